"""Gradients held against finite differences, with PyTorch's arguments and errors."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import Any

from .. import _plimsoll
from .._plimsoll import Tensor
from . import grad as _grad

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]


class GradcheckError(RuntimeError):
    """A gradient is wrong, differs between runs, or has the wrong shape or dtype."""


def _tensors(given: Any) -> tuple[Tensor, ...]:
    several = given if isinstance(given, (tuple, list)) else (given,)
    return tuple(item for item in several if isinstance(item, Tensor))


def _wanted(tensors: Iterable[Any]) -> list[Tensor]:
    return [x for x in tensors if isinstance(x, Tensor) and x.requires_grad]


def _check_inputs(inputs: tuple[Any, ...]) -> None:
    if not _wanted(inputs):
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of the them have "
            "requires_grad=True."
        )
    for index, x in enumerate(inputs):
        if not (isinstance(x, Tensor) and x.requires_grad):
            continue
        if x.dtype is not _plimsoll.float64:
            warnings.warn(
                f"Input #{index} requires gradient and is not a double precision floating point or complex. This check "
                "will likely fail if all the inputs are not of double precision floating point or complex. ",
                stacklevel=3,
            )
        if any(stride == 0 and size > 1 for stride, size in zip(x.stride(), x.size(), strict=True)):
            raise RuntimeError(
                f"The {index}th input has a dimension with stride 0. gradcheck only supports inputs that are "
                "non-overlapping to be able to compute the numerical gradients correctly. You should call .contiguous on "
                "the input before passing it to gradcheck."
            )


def _numerical(
    func: Callable[..., Any], inputs: tuple[Any, ...], x: Tensor, eps: float, outputs: tuple[Tensor, ...]
) -> list[Tensor]:
    """The Jacobian of each output by `x`, from differences: a matrix of the input's by the output's elements."""
    columns: list[list[Tensor]] = [[] for _ in outputs]
    values = x.detach()

    def at(place: Any, value: float) -> tuple[Tensor, ...]:
        values[place] = value
        # The function may ask for gradients itself, so it runs recorded.
        return tuple(out.detach().clone() for out in _tensors(func(*inputs)))

    for place in _places(values):
        kept = values[place].item()
        above, below = at(place, kept + eps), at(place, kept - eps)
        values[place] = kept
        for column, high, low in zip(columns, above, below, strict=True):
            _check_alike(high, low)
            column.append(((high - low) / (2 * eps)).reshape(-1))
    empty = [_plimsoll.zeros((0, out.numel()), dtype=out.dtype) for out in outputs]
    return [_plimsoll.stack(column) if column else none for column, none in zip(columns, empty, strict=True)]


def _check_alike(high: Tensor, low: Tensor) -> None:
    for what, a, b in (("shape", high.shape, low.shape), ("dtype", high.dtype, low.dtype)):
        if a != b:
            raise AssertionError(
                f"Expected `func` to return outputs with the same {what} when inputs are perturbed within `eps`, but got {a} and {b}"
            )


def _places(x: Tensor) -> list[tuple[int, ...]]:
    places: list[tuple[int, ...]] = [()]
    for size in x.size():
        places = [(*place, index) for place in places for index in range(size)]
    return places


def _analytical(out: Tensor, inputs: list[Tensor], grad_dtypes: bool) -> list[Tensor]:
    """The Jacobian of one output by each input, from backward."""
    columns: list[list[Tensor]] = [[] for _ in inputs]
    for place in _places(out):
        start = _plimsoll.zeros_like(out)
        start[place] = 1
        found = _grad(out, inputs, start, retain_graph=True, allow_unused=True)
        for column, grad, x in zip(columns, found, inputs, strict=True):
            if grad is not None and grad.size() != x.size():
                raise GradcheckError("Analytical gradient has incorrect size")
            if grad is not None and grad_dtypes and grad.dtype != x.dtype:
                raise GradcheckError("Analytical gradient has incorrect dtype")
            column.append(_plimsoll.zeros(x.numel(), dtype=x.dtype) if grad is None else grad.reshape(-1))
    empty = [_plimsoll.zeros((x.numel(), 0), dtype=x.dtype) for x in inputs]
    return [_plimsoll.stack(column, 1) if column else none for column, none in zip(columns, empty, strict=True)]


def _check_undefined(func: Callable[..., Any], inputs: tuple[Any, ...]) -> None:
    """Backward must take a missing gradient for one of several outputs as zeros."""
    outputs = [out for out in _tensors(func(*inputs)) if out.requires_grad]
    wanted = _wanted(inputs)
    for out in outputs if len(outputs) > 1 else []:
        silent = _plimsoll.zeros_like(out)
        for grad in _grad(out, wanted, silent, retain_graph=True, allow_unused=True):
            if grad is not None and (grad != 0).any():
                raise GradcheckError(
                    "Expected all input grads to be undefined or zero when all output grads are undefined or zero. "
                    "Please look at 'Notes about undefined output gradients' in 'tools/autograd/derivatives.yaml'"
                )


def _check_batched(out: Tensor, index: int, inputs: list[Tensor]) -> None:
    """The gradients of two at once must be those of one after the other."""
    starts = [_plimsoll.randn_like(out) for _ in range(2)]
    alone = [_grad(out, inputs, start, retain_graph=True, allow_unused=True) for start in starts]
    together = _grad(
        out, inputs, _plimsoll.stack(starts), retain_graph=True, allow_unused=True, is_grads_batched=True
    )
    for place, (found, once, again) in enumerate(zip(together, *alone, strict=True)):
        if once is None or again is None:
            continue
        expected = _plimsoll.stack([once, again])
        if found is None or not _plimsoll.allclose(found, expected):
            raise GradcheckError(
                f"For output {index} and input {place}:\nGot:\n{found}\n\nExpected:\n{expected}\n\n"
                "gradcheck or gradgradcheck failed while testing batched gradient computation."
            )


def _check_outputs(given: Any) -> tuple[Tensor, ...]:
    """What the function gave, which is tensors alone."""
    for out in given if isinstance(given, (tuple, list)) else (given,):
        if not isinstance(out, Tensor):
            raise AttributeError(f"'{type(out).__name__}' object has no attribute 'requires_grad'")
    return _tensors(given)


def _check(
    func: Callable[..., Any],
    inputs: tuple[Any, ...],
    eps: float,
    atol: float,
    rtol: float,
    nondet_tol: float,
    check_undefined_grad: bool,
    check_grad_dtypes: bool,
    check_batched_grad: bool,
) -> None:
    _check_inputs(inputs)
    outputs, wanted = _check_outputs(func(*inputs)), _wanted(inputs)
    numerical = [_numerical(func, inputs, x, eps, outputs) for x in wanted]
    # Once more: differences write to the inputs, which graphs of before notice.
    outputs = _tensors(func(*inputs))
    for index, out in enumerate(outputs):
        if not out.requires_grad:
            if out.is_floating_point() and any((by_input[index] != 0).any() for by_input in numerical):
                raise GradcheckError("Numerical gradient for function expected to be zero")
            continue
        analytical = _analytical(out, wanted, check_grad_dtypes)
        for place, found in enumerate(analytical):
            expected = numerical[place][index]
            if not _plimsoll.allclose(found.to(expected.dtype), expected, rtol=rtol, atol=atol, equal_nan=True):
                raise GradcheckError(
                    f"Jacobian mismatch for output {index} with respect to input {place},\n"
                    f"numerical:{expected}\nanalytical:{found}\n"
                )
        if check_batched_grad:
            _check_batched(out, index, wanted)
        for once, again in zip(analytical, _analytical(out, wanted, check_grad_dtypes), strict=True):
            if once.numel() > 0 and (once - again).abs().max().item() > nondet_tol:
                raise GradcheckError(
                    "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times "
                    "gives different values, although analytical gradient matches numerical gradient."
                    f"The tolerance for nondeterminism was {nondet_tol}."
                )
    if check_undefined_grad:
        _check_undefined(func, inputs)


def get_numerical_jacobian(
    fn: Callable[..., Any], inputs: tuple[Any, ...], target: Any = None, eps: float = 1e-3, grad_out: float = 1.0
) -> list[Tensor]:
    """The Jacobian of the first output of `fn(inputs)` by each tensor of `target`, from differences. PyTorch calls it
    private, and warns."""
    _warn_of_private("get_numerical_jacobian", grad_out)
    outputs = _tensors(fn(inputs))
    return [_numerical(lambda *given: fn(given), inputs, x, eps, outputs)[0] for x in _wanted(_tensors(inputs if target is None else target))]


def get_analytical_jacobian(
    inputs: Any, output: Tensor, nondet_tol: float = 0.0, grad_out: float = 1.0
) -> tuple[list[Tensor], bool, bool, bool]:
    """The Jacobian of an output by each input, from backward; whether backward gives the same twice; whether the sizes
    and the dtypes of the gradients are those of the inputs. PyTorch calls it private, and warns."""
    _warn_of_private("get_analytical_jacobian", grad_out)
    wanted = _wanted(_tensors(inputs))
    found = _grad(output, wanted, _plimsoll.zeros_like(output), retain_graph=True, allow_unused=True)
    sizes = all(grad is None or grad.size() == x.size() for grad, x in zip(found, wanted, strict=True))
    dtypes = all(grad is None or grad.dtype == x.dtype for grad, x in zip(found, wanted, strict=True))
    once, again = (_analytical(output, wanted, False) for _ in range(2))
    apart = [(one - other).abs().max().item() for one, other in zip(once, again, strict=True) if one.numel() > 0]
    return once, max(apart, default=0.0) <= nondet_tol, sizes, dtypes


def _warn_of_private(name: str, grad_out: float) -> None:
    warnings.warn(
        f"`{name}` was part of PyTorch's private API and not meant to be exposed. We are deprecating it and it will be "
        "removed in a future version of PyTorch. If you have a specific use for this or feature request for this to be a "
        "stable API, please file us an issue at https://github.com/pytorch/pytorch/issues/new",
        FutureWarning,
        stacklevel=3,
    )
    if grad_out != 1.0:
        raise ValueError("Expected grad_out to be 1.0")


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Whether the gradients of `func` are those of finite differences. Every element is looked at, also in `fast_mode`."""
    if not (check_backward_ad or check_forward_ad):
        raise AssertionError("Expected at least one of check_forward_ad or check_backward_ad to be True")
    if check_batched_grad and not check_backward_ad:
        raise AssertionError("Setting check_batched_grad=True requires check_backward_ad to be True")
    if check_batched_forward_grad or check_forward_ad:
        raise NotImplementedError("gradcheck checks backward alone: there is no forward mode")
    inputs = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    try:
        _check(func, inputs, eps, atol, rtol, nondet_tol, check_undefined_grad, check_grad_dtypes, check_batched_grad)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """Whether the gradients of the gradients of `func` are those of finite differences."""
    if not (check_fwd_over_rev or check_rev_over_rev):
        raise AssertionError("Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True")
    inputs = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    if grad_outputs is None:
        outputs = [out for out in _tensors(func(*inputs)) if out.requires_grad]
        starts = tuple(_start(out, gen_non_contig_grad_outputs) for out in outputs)
    else:
        starts = tuple(grad_outputs) if isinstance(grad_outputs, (tuple, list)) else (grad_outputs,)

    def slopes(*given: Any) -> tuple[Tensor, ...]:
        own, starts_given = given[: len(inputs)], given[len(inputs) :]
        outputs = [out for out in _tensors(func(*own)) if out.requires_grad]
        found = _grad(outputs, _wanted(own), list(starts_given), create_graph=True, allow_unused=True)
        return tuple(grad for grad in found if grad is not None)

    return gradcheck(
        slopes,
        inputs + starts,
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad,
        check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev,
        fast_mode=fast_mode,
        masked=masked,
    )


def _start(out: Tensor, non_contiguous: bool) -> Tensor:
    """A random gradient of an output, to be differentiated by."""
    start = _plimsoll.rand_like(out)
    if non_contiguous:
        start = _plimsoll.stack([start, start], -1)[..., 0]
    return start.detach().requires_grad_()
