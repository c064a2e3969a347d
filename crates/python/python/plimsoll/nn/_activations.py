"""Activations that PyTorch's top level has too, and those that take other arguments here than there."""

from .._plimsoll import Tensor
from .._plimsoll import celu as celu
from .._plimsoll import gelu as gelu
from .._plimsoll import hardshrink as hardshrink
from .._plimsoll import log_softmax as log_softmax
from .._plimsoll import prelu as prelu
from .._plimsoll import relu as _relu
from .._plimsoll import rrelu as rrelu
from .._plimsoll import selu as selu
from .._plimsoll import sigmoid as sigmoid
from .._plimsoll import softmax as softmax
from .._plimsoll import tanh as tanh
from .._plimsoll import threshold as threshold

__all__ = [
    "celu",
    "gelu",
    "hardshrink",
    "log_softmax",
    "prelu",
    "relu",
    "rrelu",
    "selu",
    "sigmoid",
    "softmax",
    "tanh",
    "threshold",
]


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """Each element, or 0 where it is negative; over `input` itself if `inplace` says so."""
    return input.relu_() if inplace else _relu(input)
