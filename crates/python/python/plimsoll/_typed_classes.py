"""PyTorch's old classes of a dtype, `FloatTensor` and its kin: calling one makes a tensor, and a tensor of that dtype is
an instance."""

from __future__ import annotations

from typing import Any

from . import _plimsoll
from ._size import Size


class _TypedTensor(type):
    """The class of these classes: each stands for a dtype."""

    dtype: _plimsoll.dtype
    #: Where its tensors are.
    device = "cpu"

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, _plimsoll.Tensor) and instance.dtype == cls.dtype and not instance.is_cuda

    def __call__(cls, *data: Any, device: Any = None) -> _plimsoll.Tensor:
        """Memory of given sizes, the values of a sequence, or the memory of a tensor."""
        is_size = len(data) == 1 and hasattr(data[0], "__index__") and not hasattr(data[0], "__len__")
        if len(data) == 1 and not is_size:
            if isinstance(data[0], Size):
                return _plimsoll.empty(data[0], dtype=cls.dtype, device=device)
            if isinstance(data[0], _plimsoll.Tensor):
                if data[0].dtype != cls.dtype:
                    raise TypeError(f"{cls.__name__}: expected {cls.dtype} (got {data[0].dtype})")
                return data[0]
            if not hasattr(data[0], "__len__"):
                raise TypeError(f"new(): data must be a sequence (got {type(data[0]).__qualname__})")
            values = data[0] if hasattr(data[0], "__array_interface__") else list(data[0])
            return _plimsoll.tensor(values, dtype=cls.dtype, device=device)
        return _plimsoll.empty(*(data or (0,)), dtype=cls.dtype, device=device)


class FloatTensor(metaclass=_TypedTensor):
    """Tensors of float32."""

    dtype = _plimsoll.float32


class DoubleTensor(metaclass=_TypedTensor):
    """Tensors of float64."""

    dtype = _plimsoll.float64


class HalfTensor(metaclass=_TypedTensor):
    """Tensors of float16."""

    dtype = _plimsoll.float16


class BFloat16Tensor(metaclass=_TypedTensor):
    """Tensors of bfloat16."""

    dtype = _plimsoll.bfloat16


class ByteTensor(metaclass=_TypedTensor):
    """Tensors of uint8."""

    dtype = _plimsoll.uint8


class CharTensor(metaclass=_TypedTensor):
    """Tensors of int8."""

    dtype = _plimsoll.int8


class ShortTensor(metaclass=_TypedTensor):
    """Tensors of int16."""

    dtype = _plimsoll.int16


class IntTensor(metaclass=_TypedTensor):
    """Tensors of int32."""

    dtype = _plimsoll.int32


class LongTensor(metaclass=_TypedTensor):
    """Tensors of int64."""

    dtype = _plimsoll.int64


class BoolTensor(metaclass=_TypedTensor):
    """Tensors of bool."""

    dtype = _plimsoll.bool
