"""Mixed precision on the host by its older names; `plimsoll.amp` has the general ones."""

from __future__ import annotations

import warnings
from typing import Any

from ... import _plimsoll
from ...amp.autocast_mode import autocast as _autocast
from ...amp.grad_scaler import GradScaler as _GradScaler

__all__ = ["GradScaler", "autocast"]


def _deprecated(old: str, new: str) -> None:
    said = f"`torch.cpu.amp.{old}(args...)` is deprecated. Please use `torch.amp.{new}` instead."
    warnings.warn(said, FutureWarning, stacklevel=3)


class autocast(_autocast):
    """`plimsoll.amp.autocast("cpu", …)`."""

    def __init__(
        self, enabled: bool = True, dtype: _plimsoll.dtype = _plimsoll.bfloat16, cache_enabled: bool = True
    ) -> None:
        _deprecated("autocast", "autocast('cpu', args...)")
        super().__init__("cpu", enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)


class GradScaler(_GradScaler):
    """`plimsoll.amp.GradScaler("cpu", …)`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _deprecated("GradScaler", "GradScaler('cpu', args...)")
        super().__init__("cpu", *args, **kwargs)
