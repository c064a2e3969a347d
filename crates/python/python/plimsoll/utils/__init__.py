"""PyTorch's `utils`: what programs use beside tensors and modules."""

from __future__ import annotations

from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from ._swap import swap_tensors as swap_tensors

if _TYPE_CHECKING:
    from . import _pytree as _pytree
    from . import benchmark as benchmark
    from . import checkpoint as checkpoint
    from . import data as data
    from . import dlpack as dlpack
    from . import flop_counter as flop_counter
    from . import hooks as hooks


_LAZY = ("_pytree", "benchmark", "checkpoint", "data", "dlpack", "flop_counter", "hooks")


def __getattr__(name: str) -> _Any:
    """Loads these when they are first named: a program without a loader does not wait for it."""
    if name not in _LAZY:
        raise AttributeError(f"module 'plimsoll.utils' has no attribute '{name}'")
    import importlib

    return importlib.import_module(f".{name}", __name__)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
