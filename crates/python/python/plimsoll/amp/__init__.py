"""Mixed precision: `autocast` for operations, `GradScaler` for the gradients of float16."""

from ._custom import custom_bwd as custom_bwd
from ._custom import custom_fwd as custom_fwd
from .autocast_mode import autocast as autocast
from .autocast_mode import is_autocast_available as is_autocast_available
from .grad_scaler import GradScaler as GradScaler

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]
