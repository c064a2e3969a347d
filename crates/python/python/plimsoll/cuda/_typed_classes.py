"""PyTorch's old classes of a dtype on a GPU, `cuda.FloatTensor` and its kin."""

from __future__ import annotations

from typing import Any

from .. import _plimsoll
from .._typed_classes import _TypedTensor


class _OnGpu(_TypedTensor):
    """The class of these classes: each stands for a dtype on the current GPU."""

    device = "cuda"

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, _plimsoll.Tensor) and instance.dtype == cls.dtype and instance.is_cuda

    def __call__(cls, *data: Any, device: Any = None) -> _plimsoll.Tensor:
        return super().__call__(*data, device=device or "cuda")


class FloatTensor(metaclass=_OnGpu):
    """Tensors of float32."""

    dtype = _plimsoll.float32


class DoubleTensor(metaclass=_OnGpu):
    """Tensors of float64."""

    dtype = _plimsoll.float64


class HalfTensor(metaclass=_OnGpu):
    """Tensors of float16."""

    dtype = _plimsoll.float16


class BFloat16Tensor(metaclass=_OnGpu):
    """Tensors of bfloat16."""

    dtype = _plimsoll.bfloat16


class ByteTensor(metaclass=_OnGpu):
    """Tensors of uint8."""

    dtype = _plimsoll.uint8


class CharTensor(metaclass=_OnGpu):
    """Tensors of int8."""

    dtype = _plimsoll.int8


class ShortTensor(metaclass=_OnGpu):
    """Tensors of int16."""

    dtype = _plimsoll.int16


class IntTensor(metaclass=_OnGpu):
    """Tensors of int32."""

    dtype = _plimsoll.int32


class LongTensor(metaclass=_OnGpu):
    """Tensors of int64."""

    dtype = _plimsoll.int64


class BoolTensor(metaclass=_OnGpu):
    """Tensors of bool."""

    dtype = _plimsoll.bool
