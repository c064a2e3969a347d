"""What functions written for any tensor ask: whether an argument's class takes operations over, and what it answers."""

from __future__ import annotations

import functools
import sys
from typing import Any, Callable, Iterable

from . import _plimsoll
from ._plimsoll import DisableTorchFunctionSubclass as DisableTorchFunctionSubclass
from ._plimsoll import Tensor, _disabled_torch_function_impl, _namespace

__all__ = [
    "BaseTorchFunctionMode",
    "TorchFunctionMode",
    "handle_torch_function",
    "has_torch_function",
    "has_torch_function_unary",
    "has_torch_function_variadic",
    "is_tensor_like",
    "is_tensor_method_or_property",
    "resolve_name",
    "wrap_torch_function",
]

_ORDINARY = (Tensor.__torch_function__, _disabled_torch_function_impl)


def _takes_over(value: Any) -> bool:
    own = getattr(type(value), "__torch_function__", None)
    if own is None or type(value) is Tensor or own is _disabled_torch_function_impl:
        return False
    # The class of parameters inherits the ordinary one.
    return getattr(own, "__func__", own) is not getattr(_ORDINARY[0], "__func__", _ORDINARY[0])


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Whether the class of one of these takes operations over."""
    return any(_takes_over(value) for value in relevant_args)


def has_torch_function_unary(relevant_arg: Any) -> bool:
    """The same of one argument."""
    return _takes_over(relevant_arg)


def has_torch_function_variadic(*relevant_args: Any) -> bool:
    """The same of arguments one by one."""
    return has_torch_function(relevant_args)


def handle_torch_function(public_api: Callable[..., Any], relevant_args: Iterable[Any], *args: Any, **kwargs: Any) -> Any:
    """What the classes of the arguments answer in the place of a function: subclasses before the classes above them."""
    found: list[Any] = []
    for value in relevant_args:
        if not _takes_over(value) or type(value) in map(type, found):
            continue
        at = next((at for at, other in enumerate(found) if issubclass(type(value), type(other))), len(found))
        found.insert(at, value)
    kinds = tuple(map(type, found))
    for value in found:
        answer = value.__torch_function__(public_api, kinds, args, kwargs)
        if answer is not NotImplemented:
            return answer
    name = f"{public_api.__module__}.{public_api.__name__}"
    raise TypeError(f"no implementation found for '{name}' on types that implement __torch_function__: {list(kinds)}")


class TorchFunctionMode:
    """While it is entered, operations of this thread go to its `__torch_function__`, also on plain tensors. A mode does not
    see what it does itself. Of several the last one entered is asked first.

    Unlike PyTorch's it sees functions that are written in Python (`linear`, `normalize`) as the operations that they are made
    of, and does not see what is no operation: `tensor`, `as_tensor`, `to` and its kin, `item`, `tolist`, `numpy`,
    `requires_grad_`, attributes, and questions such as `size` and `is_floating_point`.

    >>> import plimsoll as pm
    >>> class Named(pm.overrides.TorchFunctionMode):
    ...     def __torch_function__(self, func, types, args=(), kwargs=None):
    ...         print(func.__name__)
    ...         return func(*args, **(kwargs or {}))
    >>> with Named():
    ...     x = pm.ones(2) + 1
    ones
    add
    """

    def __torch_function__(self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """What becomes of an operation. A class of one's own defines it."""
        raise NotImplementedError(f"{type(self).__name__} is a TorchFunctionMode, which defines __torch_function__")

    def __enter__(self) -> Any:
        _plimsoll._push_function_mode(self)
        return self

    def __exit__(self, *failure: object) -> None:
        _plimsoll._pop_function_mode()


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that does every operation as it is."""

    def __torch_function__(self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


def is_tensor_like(inp: Any) -> bool:
    """Whether it is a tensor, or of a class that takes operations over."""
    return type(inp) is Tensor or hasattr(inp, "__torch_function__")


def wrap_torch_function(dispatcher: Callable[..., Iterable[Any]]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator: classes of what `dispatcher` picks of the arguments may take the function over.

    >>> import plimsoll as pm
    >>> @pm.overrides.wrap_torch_function(lambda x: (x,))
    ... def doubled(x):
    ...     return 2 * x
    >>> doubled(pm.ones(1))
    tensor([2.])
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            relevant = tuple(dispatcher(*args, **kwargs))
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return function(*args, **kwargs)

        return wrapped

    return decorate


#: Where functions that classes may take over stand.
_PLACES = ("", "nn.functional", "linalg", "special", "functional")


def is_tensor_method_or_property(func: Callable[..., Any]) -> bool:
    """Whether it is a method of tensors, or gets one of their attributes."""
    name = getattr(func, "__name__", None)
    if name == "__get__":
        return True
    return name is not None and getattr(Tensor, name, None) is func


def resolve_name(f: Callable[..., Any]) -> str | None:
    """The name that programs call it by; None if it is no function of tensors.

    >>> import plimsoll as pm
    >>> pm.overrides.resolve_name(pm.Tensor.add)
    'plimsoll.Tensor.add'
    """
    name = getattr(f, "__name__", None)
    if name is None:
        return None
    if name == "__get__":
        owner = getattr(getattr(f, "__self__", None), "__name__", None)
        return None if owner is None else f"{_namespace()}.Tensor.{owner}.__get__"
    if getattr(Tensor, name, None) is f:
        return f"{_namespace()}.Tensor.{name}"
    for place in _PLACES:
        module = sys.modules.get(f"plimsoll.{place}" if place else "plimsoll")
        if getattr(module, name, None) is f:
            return ".".join(part for part in (_namespace(), place, name) if part)
    return None
