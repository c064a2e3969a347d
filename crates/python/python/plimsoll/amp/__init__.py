"""Mixed precision: `autocast` for operations, `GradScaler` for the gradients of float16."""

from .autocast_mode import autocast as autocast
from .autocast_mode import is_autocast_available as is_autocast_available
from .grad_scaler import GradScaler as GradScaler

__all__ = ["GradScaler", "autocast", "is_autocast_available"]
