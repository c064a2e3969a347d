"""Operations in a lower precision where that loses little, in float32 where it would lose much."""

from __future__ import annotations

import functools
import threading
import warnings
from typing import Any, cast

from .. import _plimsoll
from .._modes import _Function
from .._plimsoll import dtype as _dtype


def is_autocast_available(device_type: str) -> bool:
    """Whether devices of that kind can be cast for."""
    _plimsoll.is_autocast_enabled(device_type)
    return True


def _can_cast_for_cuda() -> bool:
    """Whether there is a GPU, or a device that is cast for as one: a stand-in, a dry run."""
    return _plimsoll._cuda_count() > 0 or any(device.type != "cpu" for device in _plimsoll._devices())


class autocast:
    """While in force on a thread, operations on devices of a kind are cast: products to `dtype`, what would lose too much
    to float32. A context manager, or a decorator."""

    def __init__(
        self,
        device_type: str,
        dtype: _dtype | None = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:
        if not isinstance(device_type, str):
            raise ValueError(f"device_type is a name such as 'cpu', not {type(device_type).__name__}")
        lower = _plimsoll.get_autocast_dtype(device_type) if dtype is None else dtype
        if enabled and device_type == "cuda" and not _can_cast_for_cuda():
            warnings.warn("CUDA is not available or torch_xla is imported. Disabling autocast.", stacklevel=2)
            enabled = False
        if enabled and lower not in (_plimsoll.bfloat16, _plimsoll.float16):
            warnings.warn(f"autocast has no use for {lower}, and is off; use bfloat16 or float16", stacklevel=2)
            enabled = False
        self.device, self.fast_dtype = device_type, lower
        self._enabled, self._cache_enabled = enabled, cache_enabled
        self._entered = threading.local()

    def __enter__(self) -> autocast:
        stack = self._entered.__dict__.setdefault("stack", [])
        stack.append(
            (
                _plimsoll.is_autocast_enabled(self.device),
                _plimsoll.get_autocast_dtype(self.device),
                _plimsoll.is_autocast_cache_enabled(),
            )
        )
        _open.__dict__["regions"] = _open.__dict__.get("regions", 0) + 1
        _plimsoll.set_autocast_enabled(self.device, self._enabled)
        _plimsoll.set_autocast_dtype(self.device, self.fast_dtype)
        if self._cache_enabled is not None:
            _plimsoll.set_autocast_cache_enabled(self._cache_enabled)
        return self

    def __exit__(self, *failure: object) -> None:
        enabled, dtype, caches = self._entered.stack.pop()
        _open.regions -= 1
        if _open.regions == 0:
            _plimsoll.clear_autocast_cache()
        _plimsoll.set_autocast_enabled(self.device, enabled)
        _plimsoll.set_autocast_dtype(self.device, dtype)
        _plimsoll.set_autocast_cache_enabled(caches)

    def __call__(self, function: _Function) -> _Function:
        @functools.wraps(function)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return cast(_Function, inside)


# How many regions are open on a thread; the end of the last forgets the casts of leaves.
_open = threading.local()
