"""`Variable`, which was a tensor with gradients once and is a tensor now: calls give tensors, and tensors are instances."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _plimsoll
from .._plimsoll import Tensor


__all__ = ["Variable"]


class _Engine:
    """What runs backward, as far as programs call it."""

    @staticmethod
    def queue_callback(callback: Callable[[], Any]) -> None:
        """Calls `callback` when the backward that is going on has computed its gradients."""
        _plimsoll._queue_callback(callback)


class _VariableMeta(type):
    def __instancecheck__(cls, other: Any) -> bool:
        return isinstance(other, Tensor)

    def __call__(cls, data: Any = None, requires_grad: bool = False, volatile: bool | None = None) -> Tensor:
        """A tensor over the same memory, outside the graph that `data` belongs to."""
        if data is not None and not isinstance(data, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(data).__name__}")
        made = Tensor() if data is None else data.detach()
        return made.requires_grad_(requires_grad)


class Variable(metaclass=_VariableMeta):
    """An old name of `Tensor`: `Variable(x)` is a tensor over the memory of `x`, and every tensor is a `Variable`.

    >>> import plimsoll as pm
    >>> isinstance(pm.ones(1), pm.autograd.Variable)
    True
    """

    _execution_engine = _Engine()
