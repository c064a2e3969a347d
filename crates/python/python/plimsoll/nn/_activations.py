"""Activations that PyTorch's top level has too, and those that take other arguments here than there."""

import warnings

from .. import _plimsoll
from .._plimsoll import Tensor, empty_like, zeros_like
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
    "celu_",
    "elu_",
    "gelu",
    "gumbel_softmax",
    "hardshrink",
    "hardtanh_",
    "leaky_relu_",
    "log_softmax",
    "prelu",
    "relu",
    "relu_",
    "rrelu",
    "rrelu_",
    "selu",
    "selu_",
    "sigmoid",
    "softmax",
    "softmin",
    "tanh",
    "threshold",
    "threshold_",
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


def gumbel_softmax(
    logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Tensor:
    """A softmax of `logits` with noise of Gumbel's distribution: a draw of a class that has a gradient. With `hard` it is
    one-hot, and its gradient that of the soft one."""
    noise = -empty_like(logits).exponential_().log()
    soft = ((logits + noise) / tau).softmax(dim)
    if not hard:
        return soft
    at = soft.argmax(dim, keepdim=True)
    chosen = zeros_like(logits).scatter_(dim, at, 1.0)
    return chosen - soft.detach() + soft


def celu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """`celu` over `input` itself."""
    return celu(input, alpha, True)


def selu_(input: Tensor) -> Tensor:
    """`selu` over `input` itself."""
    return selu(input, True)


def elu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """`elu` over `input` itself."""
    return _plimsoll.elu(input, alpha, True)


def hardtanh_(input: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """`hardtanh` over `input` itself."""
    return _plimsoll.hardtanh(input, min_val, max_val, True)


def leaky_relu_(input: Tensor, negative_slope: float = 0.01) -> Tensor:
    """`leaky_relu` over `input` itself."""
    return _plimsoll.leaky_relu(input, negative_slope, True)


def rrelu_(input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False) -> Tensor:
    """`rrelu` over `input` itself."""
    return rrelu(input, lower, upper, training, True)


def threshold_(input: Tensor, threshold: float, value: float) -> Tensor:
    """`threshold` over `input` itself."""
    return _plimsoll.threshold(input, threshold, value, True)
