"""Mixed precision on GPUs by its older names; `plimsoll.amp` has the general ones."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

from ... import _plimsoll
from ...amp._custom import custom_bwd as _custom_bwd
from ...amp._custom import custom_fwd as _custom_fwd
from ...amp.autocast_mode import autocast as _autocast
from ...amp.grad_scaler import GradScaler as _GradScaler

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]


def _deprecated(old: str, new: str) -> None:
    said = f"`torch.cuda.amp.{old}(args...)` is deprecated. Please use `torch.amp.{new}` instead."
    warnings.warn(said, FutureWarning, stacklevel=3)


class autocast(_autocast):
    """`plimsoll.amp.autocast("cuda", …)`."""

    def __init__(
        self, enabled: bool = True, dtype: _plimsoll.dtype = _plimsoll.float16, cache_enabled: bool = True
    ) -> None:
        _deprecated("autocast", "autocast('cuda', args...)")
        super().__init__("cuda", enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)


class GradScaler(_GradScaler):
    """`plimsoll.amp.GradScaler("cuda", …)`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _deprecated("GradScaler", "GradScaler('cuda', args...)")
        super().__init__("cuda", *args, **kwargs)


custom_fwd = partial(_custom_fwd, device_type="cuda")
custom_bwd = partial(_custom_bwd, device_type="cuda")
