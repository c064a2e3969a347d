"""Answers `import torch` and imports below it with Plimsoll's modules. `torch` itself is a module of its own, with all
names of Plimsoll's and PyTorch's version; those below are the modules of the package, under a second name. What is not
there is told by `_missing.py`."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
import types
from typing import Any, Callable, Sequence

from . import _spawned
from ._missing import missing_attribute, raise_missing

# The PyTorch whose names and semantics these are.
TORCH_VERSION = "2.15.0"
# Modules of ours that PyTorch does not have.
_OURS = ("run", "safetensors", "watch")


def resolve_torch() -> types.ModuleType:
    """Makes `torch` mean Plimsoll in this process from now on, and gives the module back.

    Raises `RuntimeError` if PyTorch itself is imported already: one program cannot have both under one name.

    >>> import plimsoll.run
    >>> torch = plimsoll.run.resolve_torch()
    >>> import torch.nn.functional as F
    >>> F.relu(torch.tensor([-1.0, 2.0])).tolist()
    [0.0, 2.0]
    """
    there = sys.modules.get("torch")
    if there is not None and not isinstance(there, _Torch):
        raise RuntimeError("resolve_torch: PyTorch is imported already; call this before anything imports torch")
    if not any(isinstance(finder, TorchFinder) for finder in sys.meta_path):
        _spawned.take_along_if_started()
        sys.meta_path.insert(0, TorchFinder())
        sys.meta_path.append(_LastFinder())
    return importlib.import_module("torch")


class TorchFinder(importlib.abc.MetaPathFinder):
    """Finds `torch` and what is below it, and nothing else."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name == "torch":
            spec = importlib.machinery.ModuleSpec(name, _TorchLoader(), origin=_package().__file__, is_package=True)
            spec.submodule_search_locations = list(_package().__path__)
            return spec
        if name in _spawned.STARTERS:
            _spawned.take_along()
        if not name.startswith("torch."):
            return None
        own = own_name(name)
        if own is not None:
            return importlib.machinery.ModuleSpec(name, _SecondName(own), is_package=_is_package(own))
        raise_missing(name)
        return None


class _LastFinder(importlib.abc.MetaPathFinder):
    """Asked when no other finder knows a module. `from torch.nn import x` asks for `plimsoll.nn.x`, as modules below
    `torch` go by their own names."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name.startswith("plimsoll.") and is_public(name):
            raise_missing(name.replace("plimsoll", "torch", 1))
        return None


#: Parts that PyTorch names as Python names its own things.
_DUNDERS = ("__config__", "__future__")


def own_name(name: str) -> str | None:
    """The module of ours that answers as `torch.…`, if there is one."""
    first = name.split(".")[1]
    if first in _OURS or (first.startswith("_") and first not in _DUNDERS):
        return None
    own = "plimsoll" + name.removeprefix("torch")
    try:
        return own if importlib.util.find_spec(own) is not None else None
    except ModuleNotFoundError:  # what is above it is no package
        return None


def _package() -> types.ModuleType:
    return sys.modules["plimsoll"]


def _is_package(own: str) -> bool:
    spec = importlib.util.find_spec(own)
    return spec is not None and spec.submodule_search_locations is not None


class _Torch(types.ModuleType):
    """The module `torch`."""


class _TorchLoader(importlib.abc.Loader):
    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return _Torch(spec.name, "PyTorch's names over Plimsoll.")

    def exec_module(self, module: types.ModuleType) -> None:
        package = importlib.import_module("plimsoll")
        own = {"__name__", "__doc__", "__package__", "__loader__", "__spec__", "__getattr__"}
        names = vars(module)
        names.update((name, value) for name, value in vars(package).items() if name not in {*own, *_OURS})
        names["__version__"] = f"{TORCH_VERSION}+plimsoll{package.__version__}"
        names["version"] = sys.modules["torch.version"] = _version(names["__version__"])

        def load(name: str) -> Any:
            """Names that Plimsoll loads when they are first used; the rest is missing."""
            if name not in _OURS and (not name.startswith("__") or name in _DUNDERS):
                try:
                    value = getattr(package, name)
                except AttributeError:
                    pass
                else:
                    names[name] = value
                    if isinstance(value, types.ModuleType):
                        tell_missing_names()
                    return value
            raise missing_attribute("torch", name)

        names["__getattr__"] = load
        tell_missing_names()


def _version(version: str) -> types.ModuleType:
    """`torch.version`, with the version that programs compare with."""
    own = importlib.import_module("plimsoll.version")
    module = types.ModuleType("torch.version", own.__doc__)
    vars(module).update({name: getattr(own, name) for name in own.__all__}, __version__=version)
    return module


class _SecondName(importlib.abc.Loader):
    """Puts the module that there is under its second name."""

    def __init__(self, own: str):
        self.own = own

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> None:
        return None

    def exec_module(self, module: types.ModuleType) -> None:
        # What stands in `sys.modules` after this is what the import gives.
        sys.modules[module.__name__] = importlib.import_module(self.own)
        tell_missing_names()


def is_public(own: str) -> bool:
    """Whether a module of ours is one that PyTorch has too, or could have."""
    first, *rest = own.split(".")
    return first == "plimsoll" and bool(rest) and rest[0] not in _OURS and not any(one.startswith("_") for one in rest)


def tell_missing_names() -> None:
    """Lets every public module of the package that is loaded say what it does not have, by its PyTorch name. Under that name it is
    loaded too: importing it once more would put it in place of a function of its package's that is called the same, as
    `torch.autograd.gradcheck` is."""
    for own, module in list(sys.modules.items()):
        if not is_public(own):
            continue
        second, load = own.replace("plimsoll", "torch", 1), vars(module).get("__getattr__")
        sys.modules.setdefault(second, module)
        if not isinstance(load, _Teller):
            vars(module)["__getattr__"] = _Teller(second, load)


class _Teller:
    """A module's `__getattr__`: what the module loads when it is first named, else the error."""

    def __init__(self, module: str, load: Callable[[str], Any] | None):
        self.module, self.load = module, load

    def __call__(self, name: str) -> Any:
        if self.load is not None:
            try:
                return self.load(name)
            except AttributeError:
                pass
        raise missing_attribute(self.module, name) from None
