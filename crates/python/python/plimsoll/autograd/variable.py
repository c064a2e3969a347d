"""`Variable`, which old programs wrap tensors in: a tensor is one by itself."""

from __future__ import annotations

from typing import Any

from .._plimsoll import Tensor

__all__ = ["Variable"]


class _VariableMeta(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor)


class Variable(metaclass=_VariableMeta):
    """`Variable(x)` is a tensor over the memory of `x`; every tensor is a `Variable`.

    >>> import plimsoll as pm
    >>> isinstance(pm.ones(1), pm.autograd.Variable)
    True
    """

    def __new__(cls, data: Any = None, requires_grad: bool = False, volatile: bool | None = None) -> Tensor:  # type: ignore[misc]
        if data is None:
            return Tensor()
        if not isinstance(data, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(data).__name__}")
        return data.detach().requires_grad_(requires_grad)
