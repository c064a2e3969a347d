"""`make_tensor`: random values of any dtype, for tests."""

from __future__ import annotations

import math
from typing import Any

from .. import _plimsoll
from .._facts import finfo, iinfo
from .._plimsoll import Tensor


def make_tensor(
    *shape: Any,
    dtype: _plimsoll.dtype,
    device: Any,
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """A tensor of values evenly spread from `low` to below `high`: by default -9 to 9, for uint8 0 to 9, and all bools.

    >>> import plimsoll as pm
    >>> bool((pm.testing.make_tensor(3, dtype=pm.int8, device="cpu", low=2, high=4) >= 2).all())
    True
    """
    sizes = tuple(shape[0]) if len(shape) == 1 and not isinstance(shape[0], int) else shape
    if noncontiguous and memory_format is not None:
        raise ValueError("The parameters `noncontiguous` and `memory_format` are mutually exclusive")
    # As in PyTorch, what has one element or none stays as it is.
    spread = noncontiguous and math.prod(sizes) > 1
    made = _values((*sizes[:-1], 2 * sizes[-1]) if spread else sizes, dtype, device, low, high)
    if spread:
        made = made[..., ::2]
    elif memory_format is not None:
        made = made.clone(memory_format=memory_format)
    if exclude_zero:
        made[made == 0] = 1 if not dtype.is_floating_point else finfo(dtype).tiny
    return made.requires_grad_(requires_grad) if requires_grad else made


def _values(sizes: tuple[int, ...], dtype: Any, device: Any, low: float | None, high: float | None) -> Tensor:
    if dtype is _plimsoll.bool:
        return _plimsoll.randint(0, 2, sizes, device=device).to(dtype)
    start = (0 if dtype is _plimsoll.uint8 else -9) if low is None else low
    end = (10 if not dtype.is_floating_point else 9) if high is None else high
    if math.isnan(start) or math.isnan(end) or start > end:
        raise ValueError(f"make_tensor: `low` is below `high`, and neither is NaN; they are {start} and {end}")
    if dtype.is_floating_point:
        start, end = max(start, finfo(dtype).min), min(end, finfo(dtype).max)
        return _plimsoll.empty(sizes, dtype=dtype, device=device).uniform_(start, end)
    start, end = max(math.ceil(start), iinfo(dtype).min), min(math.ceil(end), iinfo(dtype).max + 1)
    return _plimsoll.randint(start, end, sizes, dtype=dtype, device=device)
