"""Half precision where an operation has none: computed in float32, and rounded at the end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ... import _plimsoll
from ..._plimsoll import Tensor

_HALF = (_plimsoll.float16, _plimsoll.bfloat16)


def in_float32(function: Callable[..., Any], input: Tensor, *args: Any) -> Any:
    """`function(input, *args)`; for an input of half precision of float32 copies of all tensors."""
    dtype = input.dtype
    if dtype not in _HALF:
        return function(input, *args)
    results = function(*(_cast(value, _plimsoll.float32) for value in (input, *args)))
    return _cast(results, dtype)


def _cast(value: Any, dtype: Any) -> Any:
    if isinstance(value, Tensor):
        return value.to(dtype) if value.is_floating_point() else value
    return type(value)(_cast(one, dtype) for one in value) if isinstance(value, (list, tuple)) else value
