"""Activations that PyTorch's top level has too, and those that take other arguments here than there."""

import warnings

from .._plimsoll import Tensor
from .._plimsoll import celu as celu
from .._plimsoll import dtype as DType
from .._plimsoll import gelu as gelu
from .._plimsoll import hardshrink as hardshrink
from .._plimsoll import prelu as prelu
from .._plimsoll import relu as _relu
from .._plimsoll import rrelu as rrelu
from .._plimsoll import selu as selu
from .._plimsoll import sigmoid as sigmoid
from .._plimsoll import tanh as tanh
from .._plimsoll import threshold as threshold

__all__ = [
    "celu",
    "gelu",
    "hardshrink",
    "log_softmax",
    "prelu",
    "relu",
    "relu_",
    "rrelu",
    "selu",
    "sigmoid",
    "softmax",
    "softmin",
    "tanh",
    "threshold",
]


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """Each element, or 0 where it is negative; over `input` itself if `inplace` says so."""
    return input.relu_() if inplace else _relu(input)


def relu_(input: Tensor) -> Tensor:
    """`relu` over `input` itself."""
    return input.relu_()


def _guessed(name: str, ndim: int, stacklevel: int) -> int:
    warnings.warn(f"{name} without dim guesses a dimension; write dim=X", stacklevel=stacklevel)
    return 0 if ndim in (0, 1, 3) else 1


def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DType | None = None) -> Tensor:
    """`exp(x)` over its sum along `dim`."""
    if dim is None:
        dim = _guessed("softmax", input.dim(), _stacklevel)
    return input.softmax(dim, dtype=dtype)


def log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DType | None = None) -> Tensor:
    """The logarithm of `softmax`."""
    if dim is None:
        dim = _guessed("log_softmax", input.dim(), _stacklevel)
    return input.log_softmax(dim, dtype=dtype)


def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DType | None = None) -> Tensor:
    """`softmax` of the negated input."""
    if dim is None:
        dim = _guessed("softmin", input.dim(), _stacklevel)
    return (-input).softmax(dim, dtype=dtype)
