"""What programs ask about values without computing: the limits of a dtype (`finfo`, `iinfo`), what a tensor is, and the
constants that PyTorch has beside its functions."""

from __future__ import annotations

import math
from typing import Any

from . import _plimsoll
from ._plimsoll import Tensor

e, inf, nan, pi = math.e, math.inf, math.nan, math.pi

# Bits of the mantissa behind the point, the largest exponent, and the decimal digits that are sure.
_FLOATS = {
    _plimsoll.float64: (64, 52, 1023, 15),
    _plimsoll.float32: (32, 23, 127, 6),
    _plimsoll.bfloat16: (16, 7, 127, 2),
    _plimsoll.float16: (16, 10, 15, 3),
}
_INTEGERS = {
    _plimsoll.uint8: (8, False),
    _plimsoll.int8: (8, True),
    _plimsoll.int16: (16, True),
    _plimsoll.int32: (32, True),
    _plimsoll.int64: (64, True),
}


class finfo:
    """The limits of a floating-point dtype; of float32 if none is named."""

    def __init__(self, type: Any = None) -> None:
        own = _plimsoll.float32 if type is None else type
        if own not in _FLOATS:
            raise TypeError(f"finfo: {own} is no floating-point dtype; use iinfo for integers")
        self.bits, mantissa, exponent, digits = _FLOATS[own]
        self.dtype = _name(own)
        self.eps = 2.0**-mantissa
        self.max = (2.0 - self.eps) * 2.0**exponent
        self.min = -self.max
        self.smallest_normal = self.tiny = 2.0 ** (1 - exponent)
        self.resolution = float(f"1e-{digits}")

    def __repr__(self) -> str:
        names = ("resolution", "min", "max", "eps", "smallest_normal", "tiny")
        told = [f"{name}={getattr(self, name):g}" for name in names]
        return f"finfo({', '.join(told)}, dtype={self.dtype})"


class iinfo:
    """The limits of an integer dtype."""

    def __init__(self, type: Any) -> None:
        if type not in _INTEGERS:
            raise TypeError(f"iinfo: {type} is no integer dtype; use finfo for floating point")
        self.bits, signed = _INTEGERS[type]
        self.dtype = _name(type)
        self.min = -(2 ** (self.bits - 1)) if signed else 0
        self.max = 2 ** (self.bits - signed) - 1

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"


def _name(dtype: Any) -> str:
    return str(dtype).rpartition(".")[2]


def is_tensor(obj: object) -> bool:
    """Whether it is a tensor."""
    return isinstance(obj, Tensor)


def is_floating_point(input: Tensor) -> bool:
    """Whether the tensor's dtype is a floating-point one."""
    return input.is_floating_point()


def numel(input: Tensor) -> int:
    """How many elements the tensor has."""
    if not hasattr(input, "numel"):
        raise TypeError(f"numel(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
    return input.numel()
