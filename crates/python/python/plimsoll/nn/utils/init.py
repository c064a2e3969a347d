"""Modules made without drawing first values."""

from __future__ import annotations

import inspect
from typing import Any

from ..modules.module import Module


def skip_init(module_cls: Any, *args: Any, **kwargs: Any) -> Any:
    """A module whose parameters are not written."""
    if not issubclass(module_cls, Module):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")

    # The same class with a method that draws nothing; the object then becomes one of the class itself.
    def nothing(self: Any) -> None:
        pass

    quiet = type(module_cls.__name__, (module_cls,), {"reset_parameters": nothing, "_reset_parameters": nothing})
    made = quiet(*args, **kwargs)
    made.__class__ = module_cls
    return made
