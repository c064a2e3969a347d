"""Mixed precision: `autocast` for operations, `GradScaler` for the gradients of float16."""

from __future__ import annotations

from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from ._custom import custom_bwd as custom_bwd
from ._custom import custom_fwd as custom_fwd
from .autocast_mode import autocast as autocast
from .autocast_mode import is_autocast_available as is_autocast_available

if _TYPE_CHECKING:
    from . import grad_scaler as grad_scaler
    from .grad_scaler import GradScaler as GradScaler

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]


def __getattr__(name: str) -> _Any:
    """Loads the scaler when it is first named."""
    if name not in ("GradScaler", "grad_scaler"):
        raise AttributeError(f"module 'plimsoll.amp' has no attribute '{name}'")
    import importlib

    module = importlib.import_module(".grad_scaler", __name__)
    return module if name == "grad_scaler" else module.GradScaler


def __dir__() -> list[str]:
    return sorted({*globals(), "GradScaler", "grad_scaler"})
