"""PyTorch's `torch.nn`: modules, parameters, first values and functions. What is not a function is loaded when it is asked
for: many programs need none of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import functional as functional
from . import modules as modules
from .modules import _PLACES

if TYPE_CHECKING:
    from . import attention as attention
    from . import common_types as common_types
    from . import init as init
    from . import parallel as parallel
    from . import parameter as parameter
    from . import utils as utils
    from .modules import *  # noqa: F403
    from .parallel import DataParallel as DataParallel
    from .parameter import Buffer as Buffer
    from .parameter import Parameter as Parameter
    from .parameter import UninitializedBuffer as UninitializedBuffer
    from .parameter import UninitializedParameter as UninitializedParameter

_TENSORS = ("Buffer", "Parameter", "UninitializedBuffer", "UninitializedParameter")
_SUBMODULES = ("attention", "common_types", "init", "parallel", "parameter", "utils")
__all__ = [
    "Buffer", "DataParallel", "Parameter", "UninitializedBuffer", "UninitializedParameter", "functional", "init", "modules",
    "parallel", "parameter", "utils",
]  # fmt: skip
__all__ += modules.__all__


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in _PLACES:
        found = getattr(modules, name)
    elif name in _TENSORS:
        found = getattr(import_module(f"{__name__}.parameter"), name)
    elif name == "DataParallel":
        found = import_module(f"{__name__}.parallel").DataParallel
    elif name in _SUBMODULES:
        return import_module(f"{__name__}.{name}")
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
