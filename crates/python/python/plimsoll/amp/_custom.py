"""Custom functions under mixed precision: what `forward` is cast to, and that `backward` runs as it did."""

from __future__ import annotations

import functools
from typing import Any, Callable

from .. import _plimsoll
from .autocast_mode import autocast


def custom_fwd(
    fwd: Callable[..., Any] | None = None, *, device_type: str, cast_inputs: _plimsoll.dtype | None = None
) -> Any:
    """A decorator for `forward` of a `Function`: `backward` runs under the same autocast. With `cast_inputs` it runs
    outside of autocast, its floats cast to that dtype.

    >>> import plimsoll as pm
    >>> class Double(pm.autograd.Function):
    ...     @staticmethod
    ...     @pm.amp.custom_fwd(device_type="cpu", cast_inputs=pm.float32)
    ...     def forward(ctx, x):
    ...         return x * 2
    ...     @staticmethod
    ...     @pm.amp.custom_bwd(device_type="cpu")
    ...     def backward(ctx, grad):
    ...         return grad * 2
    >>> with pm.autocast("cpu"):
    ...     Double.apply(pm.ones(1, dtype=pm.bfloat16)).dtype
    plimsoll.float32
    """
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def decorated(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        ctx._dtype = _plimsoll.get_autocast_dtype(device_type)
        is_on = _plimsoll.is_autocast_enabled(device_type)
        if cast_inputs is None:
            ctx._fwd_used_autocast = is_on
            return fwd(ctx, *args, **kwargs)
        ctx._fwd_used_autocast = False
        if not is_on:
            return fwd(ctx, *args, **kwargs)
        with autocast(device_type, enabled=False):
            return fwd(ctx, *_cast(args, device_type, cast_inputs), **_cast(kwargs, device_type, cast_inputs))

    return decorated


def custom_bwd(bwd: Callable[..., Any] | None = None, *, device_type: str) -> Any:
    """A decorator for `backward` of a `Function` whose `forward` has `custom_fwd`."""
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def decorated(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        with autocast(device_type, enabled=ctx._fwd_used_autocast, dtype=ctx._dtype):
            return bwd(ctx, *args, **kwargs)

    return decorated


def _cast(value: Any, device_type: str, dtype: _plimsoll.dtype) -> Any:
    """Floats of that sort of device in another dtype, within lists and dictionaries too; float64 stays."""
    if isinstance(value, _plimsoll.Tensor):
        is_cast = value.is_floating_point() and value.device.type == device_type and value.dtype != _plimsoll.float64
        return value.to(dtype) if is_cast else value
    if isinstance(value, dict):
        return {_cast(key, device_type, dtype): _cast(item, device_type, dtype) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)([_cast(item, device_type, dtype) for item in value])
    return value
