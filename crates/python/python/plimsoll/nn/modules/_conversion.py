"""How a parameter is converted: new bytes for the same object, a new object, or a swap, as `__future__` says."""

from __future__ import annotations

from collections.abc import Callable

from ... import __future__
from ..._plimsoll import Tensor
from ...utils._swap import swap_tensors
from ..parameter import Parameter, is_lazy


def converted(fn: Callable[[Tensor], Tensor], param: Tensor, name: str) -> Tensor:
    """What stands in the parameter's place, with its gradient converted as well."""
    if __future__.get_swap_module_params_on_conversion() and not is_lazy(param):
        _swap(fn, param, name)
        return param
    if __future__.get_overwrite_module_params_on_conversion() and not is_lazy(param):
        made: Tensor = Parameter(fn(param), param.requires_grad)
        if param.grad is not None:
            made.grad = fn(param.grad).requires_grad_(param.grad.requires_grad)
        return made
    gradient = param.grad
    # What the function does in place counts as a write to the parameter.
    param.data = fn(param.data if is_lazy(param) else param)
    if gradient is not None:
        # Who holds the gradient sees it converted.
        gradient.data = fn(gradient)
        param.grad = gradient
    return param


def _swap(fn: Callable[[Tensor], Tensor], param: Tensor, name: str) -> None:
    gradient = param.grad
    try:
        swap_tensors(param, Parameter(fn(param), param.requires_grad))
    except Exception as failure:
        raise RuntimeError(f"_apply(): Couldn't swap {name}") from failure
    if gradient is not None:
        try:
            swap_tensors(gradient, fn(gradient).requires_grad_(gradient.requires_grad))
        except Exception as failure:
            raise RuntimeError(f"_apply(): Couldn't swap {name}.grad") from failure
        param.grad = gradient
