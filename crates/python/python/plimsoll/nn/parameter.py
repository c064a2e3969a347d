"""Tensors that a module owns: parameters, which are trained, and buffers, which are kept with them."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from .. import _plimsoll
from .._plimsoll import Tensor


class _OwnedMeta(type):
    """Objects that say of themselves that they are parameters or buffers are instances too."""

    _flag: str

    def __instancecheck__(cls, instance: object) -> bool:
        if super().__instancecheck__(instance):
            return True
        # Of classes that are made of these, only their own objects are.
        return "_flag" in vars(cls) and isinstance(instance, Tensor) and getattr(instance, cls._flag, False)


class Parameter(Tensor, metaclass=_OwnedMeta):
    """A tensor that is trained: a module that has it as an attribute lists it among its `parameters()`."""

    _flag = "_is_param"
    __torch_function__ = _plimsoll._disabled_torch_function_impl

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Parameter:
        if data is None:
            data = _plimsoll.empty(0)
        if type(data) is Tensor or isinstance(data, Parameter):
            return Tensor._make_subclass(cls, data, requires_grad)
        # A class of the user's stays what it is.
        own: Any = data.detach().requires_grad_(requires_grad)
        own._is_param = True
        return own  # type: ignore[no-any-return]

    def __deepcopy__(self, memo: dict[int, Any]) -> Parameter:
        known: Parameter | None = memo.get(id(self))
        if known is not None:
            return known
        made = type(self)(self.detach().clone(), self.requires_grad)
        # As in PyTorch, attributes that a program gave it stay behind.
        memo[id(self)] = made
        return made

    def __repr__(self) -> str:
        return "Parameter containing:\n" + super().__repr__()

    def __reduce_ex__(self, protocol: Any) -> Any:
        state = self.__dict__ or None
        return _rebuilt, (type(self), self.detach().as_subclass(Tensor), self.requires_grad, state)


class Buffer(Tensor, metaclass=_OwnedMeta):
    """A tensor that a module keeps and does not train. With `persistent` it is part of the `state_dict`."""

    _flag = "_is_buffer"
    __torch_function__ = _plimsoll._disabled_torch_function_impl
    persistent: bool

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True) -> Any:
        if data is None:
            data = _plimsoll.empty(0)
        own: Any = data.detach().requires_grad_(data.requires_grad)
        own.persistent = persistent
        own._is_buffer = True
        return own


def _rebuilt(cls: type[Parameter], data: Tensor, requires_grad: bool, state: dict[str, Any] | None) -> Parameter:
    made = cls(data, requires_grad)
    if state:
        made.__dict__.update(state)
    return made


def _unknown(function: Any) -> ValueError:
    name = getattr(function, "__name__", function)
    return ValueError(
        f"Attempted to use an uninitialized parameter in {name}. Its shape is not known yet: call the lazy module on an input "
        "once, or materialize() the parameter"
    )


class UninitializedParameter(Parameter):
    """A parameter whose shape is not known yet. A lazy module gives it one at its first call."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise _unknown(func)

    def numel(self) -> int:
        """Nobody knows."""
        raise _unknown("numel")

    nelement = numel

    def __new__(cls, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> UninitializedParameter:
        made = Tensor._make_subclass(cls, _plimsoll.empty(0, device=device, dtype=dtype), requires_grad)
        return made

    @property
    def data(self) -> Tensor:
        """A plain tensor without elements, which shows dtype and device."""
        return Tensor._make_subclass(Tensor, _DATA.__get__(self), False)

    @data.setter
    def data(self, data: Tensor) -> None:
        _DATA.__set__(self, data)

    def materialize(self, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Becomes a parameter of `shape`, not yet written."""
        made = _plimsoll.empty(shape, device=device or self.device, dtype=dtype or self.dtype)
        self.data = made
        self.__class__ = Parameter  # type: ignore[assignment]

    @property
    def shape(self) -> Any:
        """There is none."""
        raise RuntimeError(
            "the shape of an uninitialized parameter is not known: call the module on an input once, or materialize()"
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> UninitializedParameter:
        made = memo.get(id(self)) or type(self)(self.requires_grad, self.device, self.dtype)
        memo[id(self)] = made
        return made

    def __reduce_ex__(self, protocol: Any) -> Any:
        return type(self), (self.requires_grad, self.device, self.dtype)

    def __repr__(self) -> str:
        return "<UninitializedParameter>"


class UninitializedBuffer(Tensor):
    """A buffer whose shape is not known yet."""

    __torch_function__ = _plimsoll._disabled_torch_function_impl

    def __new__(
        cls, requires_grad: bool = False, device: Any = None, dtype: Any = None, persistent: bool = True
    ) -> UninitializedBuffer:
        made: Any = Tensor._make_subclass(cls, _plimsoll.empty(0, device=device, dtype=dtype), requires_grad)
        made.persistent = persistent
        made._is_buffer = True
        return made  # type: ignore[no-any-return]

    def materialize(self, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Becomes a buffer of `shape`, not yet written."""
        self.data = _plimsoll.empty(shape, device=device or self.device, dtype=dtype or self.dtype)
        self.__class__ = Tensor  # type: ignore[assignment]

    def __reduce_ex__(self, protocol: Any) -> Any:
        return type(self), (self.requires_grad, self.device, self.dtype, self.persistent)  # type: ignore[attr-defined]

    def __repr__(self) -> str:
        return "<UninitializedBuffer>"


_DATA: Any = Tensor.__dict__["data"]


def is_lazy(tensor: object) -> bool:
    """Whether a parameter or buffer has no shape yet."""
    return isinstance(tensor, (UninitializedParameter, UninitializedBuffer))


_State = OrderedDict[str, Tensor]
