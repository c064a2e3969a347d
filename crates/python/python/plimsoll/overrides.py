"""What functions written for any tensor ask: whether an argument's class takes operations over, and what it answers."""

from __future__ import annotations

from typing import Any, Callable, Iterable

from ._plimsoll import DisableTorchFunctionSubclass as DisableTorchFunctionSubclass
from ._plimsoll import Tensor, _disabled_torch_function_impl

__all__ = [
    "handle_torch_function",
    "has_torch_function",
    "has_torch_function_unary",
    "has_torch_function_variadic",
    "is_tensor_like",
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


def is_tensor_like(inp: Any) -> bool:
    """Whether it is a tensor, or of a class that takes operations over."""
    return type(inp) is Tensor or hasattr(inp, "__torch_function__")
