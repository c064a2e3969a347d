"""Derivatives of functions: products with vectors, Jacobians and Hessians, all by reverse mode. Products with a vector from
the right are the gradient of a gradient. Arguments, results and errors are PyTorch's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _plimsoll
from .._modes import enable_grad, set_grad_enabled
from .._plimsoll import Tensor, is_grad_enabled
from . import grad as _grad

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]

_STRICT = " This is not allowed in strict mode"
_INDEPENDENT = {
    "back": "The output of the user-provided function is independent of input {}." + _STRICT + ".",
    "back_trick": "The gradient with respect to the input is independent of entry {} in the grad_outputs when using the "
    "double backward trick to compute forward mode gradients." + _STRICT + ".",
    "double_back": "The jacobian of the user-provided function is independent of input {}." + _STRICT + ".",
    "double_back_trick": "The hessian of the user-provided function is independent of entry {} in the grad_jacobian."
    + _STRICT
    + " as it prevents from using the double backward trick to replace forward mode AD.",
}
_CONSTANT = {
    "outputs": "Output {} of the user-provided function does not require gradients. The outputs must be computed in a "
    "differentiable manner from the input when running in strict mode.",
    "grad_inputs": "The gradient with respect to input {} is independent of the inputs of the user-provided function."
    + _STRICT
    + ".",
    "jacobian": "While computing the hessian, found that the jacobian of the user-provided function with respect to input "
    "{} is independent of the input." + _STRICT + ". You should ensure that your function is twice differentiable and that "
    "the jacobian depends on the inputs (this would be violated by a linear function for example).",
}
_NO_VECTOR = "The vector v can only be None if the {} a single Tensor with a single element."


def _tuple(given: Any, name: str, function: str) -> tuple[bool, tuple[Tensor, ...]]:
    """Whether it is a tuple, and it as one."""
    is_tuple = isinstance(given, tuple)
    several = given if is_tuple else (given,)
    for index, item in enumerate(several):
        if not isinstance(item, Tensor):
            which = f"value at index {index}" if is_tuple else f"given {name}"
            raise TypeError(
                f"The {name} given to {function} must be either a Tensor or a tuple of Tensors but the {which} has type "
                f"{type(item)}."
            )
    return is_tuple, several


def _apart(tensors: tuple[Tensor, ...], create_graph: bool, need_graph: bool) -> tuple[Tensor, ...]:
    """Tensors of their own, so that an input is told from the same tensor that the function captured."""
    return tuple(
        x.view_as(x) if create_graph and x.requires_grad else x.detach().requires_grad_(need_graph) for x in tensors
    )


def _result(found: Any, create_graph: bool) -> Any:
    """What the user gets: without a history unless it was asked for."""
    if isinstance(found, Tensor):
        return found if create_graph else found.detach()
    return tuple(_result(item, create_graph) for item in found)


def _one(found: tuple[Any, ...], is_tuple: bool) -> Any:
    return found if is_tuple else found[0]


def _check_vector(v: tuple[Tensor, ...], like: tuple[Tensor, ...], is_tuple: bool) -> None:
    if len(v) != len(like):
        if is_tuple:
            raise RuntimeError(f"v is a tuple of invalid length: should be {len(like)} but got {len(v)}.")
        raise RuntimeError("The given v should contain a single Tensor.")
    for index, (one, other) in enumerate(zip(v, like, strict=True)):
        if one.size() != other.size():
            entry = f"Entry {index} in " if is_tuple else ""
            raise RuntimeError(f"{entry}v has invalid size: should be {other.size()} but got {one.size()}.")


def _check_history(tensors: tuple[Tensor | None, ...], kind: str, strict: bool) -> None:
    for index, tensor in enumerate(tensors if strict else ()):
        if tensor is None:
            raise RuntimeError(_INDEPENDENT["back"].format(index))
        if not tensor.requires_grad:
            raise RuntimeError(_CONSTANT[kind].format(index))


def _gradients(
    outputs: tuple[Tensor | None, ...],
    inputs: tuple[Tensor, ...],
    v: tuple[Tensor | None, ...] | None = None,
    create_graph: bool = False,
    retain_graph: bool | None = None,
) -> tuple[Tensor | None, ...]:
    """The gradients of those outputs that have any."""
    vectors = (None,) * len(outputs) if v is None else v
    pairs = [(out, one) for out, one in zip(outputs, vectors, strict=True) if out is not None and out.requires_grad]
    if not pairs:
        return (None,) * len(inputs)
    chosen, starts = [out for out, _ in pairs], [one for _, one in pairs]
    return _grad(chosen, inputs, starts, retain_graph, create_graph, allow_unused=True)


def _filled(
    grads: tuple[Tensor | None, ...], like: tuple[Tensor, ...], strict: bool, create_graph: bool, stage: str
) -> tuple[Tensor, ...]:
    """The gradients with zeros where there are none, or an error if `strict`."""
    filled = []
    for index, (grad, x) in enumerate(zip(grads, like, strict=True)):
        if grad is None:
            if strict:
                raise RuntimeError(_INDEPENDENT[stage].format(index))
            grad = _plimsoll.zeros_like(x)
        elif strict and create_graph and not grad.requires_grad:
            what = "hessian" if stage.startswith("double") else "jacobian"
            raise RuntimeError(
                f"The {what} of the user-provided function is independent of input {index}.{_STRICT} when "
                "create_graph=True."
            )
        filled.append(grad)
    return tuple(filled)


def _call(
    name: str, func: Callable[..., Any], inputs: tuple[Tensor, ...], strict: bool
) -> tuple[bool, tuple[Tensor, ...]]:
    is_tuple, outputs = _tuple(func(*inputs), "outputs of the user-provided function", name)
    _check_history(outputs, "outputs", strict)
    return is_tuple, outputs


def _single(name: str, outputs: tuple[Tensor, ...], is_tuple: bool) -> None:
    if is_tuple:
        raise RuntimeError(f"The function given to {name} should return a single Tensor")
    if outputs[0].numel() != 1:
        raise RuntimeError(f"The Tensor returned by the function given to {name} should contain a single element")


def _vector(
    name: str, v: Any, like: tuple[Tensor, ...], is_tuple: bool, create_graph: bool, who: str
) -> tuple[Tensor, ...] | None:
    if v is None:
        if len(like) != 1 or like[0].numel() != 1:
            raise RuntimeError(_NO_VECTOR.format(who))
        return None
    _, v = _tuple(v, "v", name)
    v = _apart(v, create_graph, need_graph=False)
    _check_vector(v, like, is_tuple)
    return v  # type: ignore[no-any-return]


_RETURNS, _TAKES = "user-provided function returns", "input to the user-provided function is"


def vjp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """The result of `func`, and the product of `v` and its Jacobian."""
    with enable_grad():
        takes_tuple, inputs = _tuple(inputs, "inputs", "vjp")
        inputs = _apart(inputs, create_graph, need_graph=True)
        gives_tuple, outputs = _call("vjp", func, inputs, strict)
        v = _vector("vjp", v, outputs, gives_tuple, create_graph, _RETURNS)
    with set_grad_enabled(create_graph or is_grad_enabled()):
        found = _gradients(outputs, inputs, v, create_graph)
        found = _filled(found, inputs, strict, create_graph, "back")
    outputs, found = _result(outputs, create_graph), _result(found, create_graph)
    return _one(outputs, gives_tuple), _one(found, takes_tuple)


def jvp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """The result of `func`, and the product of its Jacobian and `v`: the gradient of a gradient by what that one starts
    from, in which it is linear."""
    with enable_grad():
        takes_tuple, inputs = _tuple(inputs, "inputs", "jvp")
        inputs = _apart(inputs, create_graph, need_graph=True)
        v = _vector("jvp", v, inputs, takes_tuple, create_graph, _TAKES)
        gives_tuple, outputs = _call("jvp", func, inputs, strict)
        starts = tuple(_plimsoll.zeros_like(out, requires_grad=True) for out in outputs)
        grads = _gradients(outputs, inputs, starts, create_graph=True)
        _check_history(grads, "grad_inputs", strict)
    with set_grad_enabled(create_graph or is_grad_enabled()):
        found = _gradients(grads, starts, v, create_graph)
        found = _filled(found, outputs, strict, create_graph, "back_trick")
    outputs, found = _result(outputs, create_graph), _result(found, create_graph)
    return _one(outputs, gives_tuple), _one(found, gives_tuple)


def _rows(
    out: Tensor, inputs: tuple[Tensor, ...], create_graph: bool, strict: bool, index: int
) -> tuple[Tensor, ...]:
    """The Jacobian of one output by each input: one gradient for each element."""
    rows: list[list[Tensor]] = [[] for _ in inputs]
    flat = out.reshape(-1)
    for element in range(out.numel()):
        grads = _gradients((flat[element],), inputs, None, create_graph, retain_graph=True)
        for place, (grad, x) in enumerate(zip(grads, inputs, strict=True)):
            if grad is None:
                if strict:
                    raise RuntimeError(
                        f"Output {index} of the user-provided function is independent of input {place}.{_STRICT}."
                    )
                grad = _plimsoll.zeros_like(x)
            elif strict and create_graph and not grad.requires_grad:
                raise RuntimeError(
                    f"The jacobian of the user-provided function is independent of input {place}.{_STRICT} when "
                    "create_graph=True."
                )
            rows[place].append(grad)
    shapes = [tuple(out.size()) + tuple(x.size()) for x in inputs]
    if out.numel() == 0:
        return tuple(_plimsoll.zeros(shape, dtype=x.dtype, device=x.device) for shape, x in zip(shapes, inputs, strict=True))
    return tuple(_plimsoll.stack(row).reshape(shape) for row, shape in zip(rows, shapes, strict=True))


def jacobian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """The Jacobian of `func`: for each output and each input a tensor with the sizes of both. `vectorize` is about speed
    in PyTorch, and changes nothing here."""
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode"')
    if strategy == "forward-mode":
        if create_graph:
            raise NotImplementedError(
                'torch.autograd.functional.jacobian: `create_graph=True` and `strategy="forward-mode"` are not both '
                "supported (yet)."
            )
        raise NotImplementedError('strategy="forward-mode" needs derivatives in forward mode; use "reverse-mode"')
    if strict and vectorize:
        raise RuntimeError("torch.autograd.functional.jacobian: `strict=True` and `vectorized=True` are not supported together.")
    with enable_grad():
        takes_tuple, inputs = _tuple(inputs, "inputs", "jacobian")
        inputs = _apart(inputs, create_graph, need_graph=True)
        gives_tuple, outputs = _call("jacobian", func, inputs, strict)
        found = tuple(_rows(out, inputs, create_graph, strict, index) for index, out in enumerate(outputs))
    found = _result(found, create_graph)
    return _one(tuple(_one(row, takes_tuple) for row in found), gives_tuple)


def hessian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """The Hessian of `func`, which returns one element: for each pair of inputs a tensor with the sizes of both."""
    takes_tuple, inputs = _tuple(inputs, "inputs", "hessian")
    if outer_jacobian_strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode"')

    def checked(*given: Tensor) -> Tensor:
        out = func(*given)
        is_tuple, outputs = _tuple(out, "outputs of the user-provided function", "hessian")
        _check_history(outputs, "outputs", strict)
        if is_tuple:
            raise RuntimeError("The function given to hessian should return a single Tensor")
        if out.numel() != 1:
            raise RuntimeError("The Tensor returned by the function given to hessian should contain a single element")
        return out.squeeze()  # type: ignore[no-any-return]

    def slopes(*given: Tensor) -> tuple[Tensor, ...]:
        found = jacobian(checked, given, create_graph=True)
        _check_history(found, "jacobian", strict)
        return found  # type: ignore[no-any-return]

    found = jacobian(
        slopes, inputs, create_graph, strict, vectorize=vectorize, strategy=outer_jacobian_strategy
    )
    return _one(tuple(_one(row, takes_tuple) for row in found), takes_tuple)


def vhp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """The result of `func`, which has one element, and the product of `v` and its Hessian."""
    with enable_grad():
        takes_tuple, inputs = _tuple(inputs, "inputs", "vhp")
        inputs = _apart(inputs, create_graph, need_graph=True)
        v = _vector("vhp", v, inputs, takes_tuple, create_graph, _TAKES)
        gives_tuple, outputs = _call("vhp", func, inputs, strict)
        _single("vhp", outputs, gives_tuple)
        slopes = _gradients(outputs, inputs, create_graph=True)
        _check_history(slopes, "jacobian", strict)
    with set_grad_enabled(create_graph or is_grad_enabled()):
        found = _gradients(slopes, inputs, v, create_graph)
        found = _filled(found, inputs, strict, create_graph, "double_back")
    return _one(_result(outputs, create_graph), gives_tuple), _one(_result(found, create_graph), takes_tuple)


def hvp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """The result of `func`, which has one element, and the product of its Hessian and `v`."""
    with enable_grad():
        takes_tuple, inputs = _tuple(inputs, "inputs", "hvp")
        inputs = _apart(inputs, create_graph, need_graph=True)
        v = _vector("hvp", v, inputs, takes_tuple, create_graph, _TAKES)
        gives_tuple, outputs = _call("hvp", func, inputs, strict)
        _single("hvp", outputs, gives_tuple)
        slopes = _gradients(outputs, inputs, create_graph=True)
        _check_history(slopes, "jacobian", strict)
        starts = tuple(_plimsoll.zeros_like(x, requires_grad=True) for x in inputs)
        products = _gradients(slopes, inputs, starts, create_graph=True)
        _check_history(products, "grad_inputs", strict)
    with set_grad_enabled(create_graph or is_grad_enabled()):
        found = _gradients(products, starts, v, create_graph)
        found = _filled(found, inputs, strict, create_graph, "double_back_trick")
    return _one(_result(outputs, create_graph), gives_tuple), _one(_result(found, create_graph), takes_tuple)
