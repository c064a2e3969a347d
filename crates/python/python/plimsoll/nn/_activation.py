"""Activations whose functions take more than their operations do."""

from __future__ import annotations

import warnings

from .. import _plimsoll
from .._plimsoll import Tensor, dtype as DType


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """Negative elements become 0."""
    return input.relu_() if inplace else input.relu()


def relu_(input: Tensor) -> Tensor:
    """`relu` in place."""
    return input.relu_()


def sigmoid(input: Tensor) -> Tensor:
    """`1 / (1 + exp(-x))`."""
    return input.sigmoid()


def tanh(input: Tensor) -> Tensor:
    """The hyperbolic tangent."""
    return input.tanh()


def gelu(input: Tensor, *, approximate: str = "none", out: Tensor | None = None) -> Tensor:
    """x times the normal distribution's probability of less than x."""
    return _plimsoll.gelu(input, approximate=approximate, out=out)


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
