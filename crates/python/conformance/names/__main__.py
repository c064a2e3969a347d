"""Which public names of PyTorch Plimsoll does not have, module by module. With PyTorch at hand:

    PYTHONPATH=crates/python/python python crates/python/conformance/names [--counts] [module ...]

A name is public if it is in a module's `__all__`, or in `dir()` without a leading underscore and defined there (not `os`,
`Any` and the like that a module imported). Run it from another folder than the package's, which has a `types.py`."""

from __future__ import annotations

import importlib
import sys
import types
import warnings
from typing import Any

MODULES = [
    "torch",
    "torch.Tensor",
    "torch.amp",
    "torch.autograd",
    "torch.autograd.forward_ad",
    "torch.autograd.function",
    "torch.autograd.functional",
    "torch.autograd.grad_mode",
    "torch.autograd.graph",
    "torch.autograd.profiler",
    "torch.backends",
    "torch.backends.cpu",
    "torch.backends.cuda",
    "torch.backends.cudnn",
    "torch.backends.mkl",
    "torch.backends.mkldnn",
    "torch.backends.mps",
    "torch.backends.openmp",
    "torch.cpu",
    "torch.cpu.amp",
    "torch.cuda",
    "torch.cuda.amp",
    "torch.cuda.graphs",
    "torch.cuda.memory",
    "torch.cuda.nvtx",
    "torch.cuda.random",
    "torch.cuda.streams",
    "torch.func",
    "torch.hub",
    "torch.jit",
    "torch.linalg",
    "torch.nn",
    "torch.nn.functional",
    "torch.nn.init",
    "torch.nn.modules",
    "torch.nn.parallel",
    "torch.nn.parameter",
    "torch.nn.attention",
    "torch.nn.utils",
    "torch.nn.utils.parametrizations",
    "torch.nn.utils.parametrize",
    "torch.nn.utils.prune",
    "torch.nn.utils.rnn",
    "torch.nn.utils.stateless",
    "torch.optim",
    "torch.optim.lr_scheduler",
    "torch.optim.optimizer",
    "torch.optim.swa_utils",
    "torch.overrides",
    "torch.profiler",
    "torch.random",
    "torch.serialization",
    "torch.special",
    "torch.testing",
    "torch.types",
    "torch.utils",
    "torch.utils.benchmark",
    "torch.utils.checkpoint",
    "torch.utils.collect_env",
    "torch.utils.data",
    "torch.utils.data.dataloader",
    "torch.utils.data.dataset",
    "torch.utils.data.distributed",
    "torch.utils.data.sampler",
    "torch.utils.dlpack",
    "torch.utils.hooks",
    "torch.version",
    "torch.distributions",
    "torch.fft",
    "torch.sparse",
    "torch.distributed",
    "torch.multiprocessing",
]


def named(root: str, dotted: str) -> Any:
    """The module or class of that PyTorch name in the package `root`; None where it is not."""
    own = dotted.replace("torch", root, 1)
    if dotted == "torch.Tensor":
        return importlib.import_module(root).Tensor
    try:
        return importlib.import_module(own)
    except ImportError:
        return None


def is_own(module: Any, name: str) -> bool:
    """Whether a module has something of its own by that name, rather than what it imported for itself."""
    if name.startswith("_"):
        return False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        value = getattr(module, name, None)
    if isinstance(value, types.ModuleType):
        return value.__name__ == f"{module.__name__}.{name}"
    if isinstance(module, type):
        return True
    return (getattr(value, "__module__", None) or "").startswith(module.__name__)


def public_names(module: Any) -> set[str]:
    listed = {name for name in getattr(module, "__all__", ()) if not name.startswith("_")}
    return listed | {name for name in dir(module) if is_own(module, name)}


def missing(dotted: str) -> tuple[list[str], int]:
    """Names that are missing in ours, and how many PyTorch has."""
    theirs, ours = named("torch", dotted), named("plimsoll", dotted)
    names = public_names(theirs)
    if ours is None:
        return sorted(names), len(names)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return sorted(name for name in names if not hasattr(ours, name)), len(names)


def main(arguments: list[str]) -> None:
    only_counts = "--counts" in arguments
    chosen = [one for one in arguments if not one.startswith("--")] or MODULES
    for dotted in chosen:
        names, whole = missing(dotted)
        absent = "" if named("plimsoll", dotted) is not None else " (no such module)"
        print(f"{dotted}: {whole - len(names)} of {whole}{absent}")
        if names and not only_counts:
            print("    " + " ".join(names))


if __name__ == "__main__":
    main(sys.argv[1:])
