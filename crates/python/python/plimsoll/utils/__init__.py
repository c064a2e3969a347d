"""PyTorch's `utils`: what programs use beside tensors and modules."""

from __future__ import annotations

from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from . import benchmark as benchmark
from . import checkpoint as checkpoint

if _TYPE_CHECKING:
    from . import data as data


def __getattr__(name: str) -> _Any:
    """Loads what is for data when it is first named: a program without a loader does not wait for it."""
    if name != "data":
        raise AttributeError(f"module 'plimsoll.utils' has no attribute '{name}'")
    import importlib

    return importlib.import_module(".data", __name__)
