"""Losses of a linear map's results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _plimsoll
from .._modes import enable_grad
from .._plimsoll import Tensor
from ..autograd.function import Function
from . import _functional
from ._reduction import named


def linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    linear_bias: Tensor | None = None,
    weight: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: Any = None,
) -> Tensor:
    """The cross entropy between `input @ linear_weight.T` and targets.

    Scores of one dimension never exist whole, with any `options`: PyTorch's say how large its blocks are, and blocks here
    are as large as is good for the machine. As there, gradients of a mean or a sum that are made with options are
    constants to who differentiates them again."""
    reduction = named(None, None, reduction)
    if not 1 <= input.dim() <= 2:
        raise RuntimeError(f"linear_cross_entropy: the input needs one dimension, or two, and has {input.dim()}")
    if linear_weight.dim() < 2:
        raise RuntimeError(f"linear_cross_entropy: linear_weight needs two or more dimensions, and has {linear_weight.dim()}")
    scores = (*input.shape[:-1], *linear_weight.shape[:-1])
    if tuple(target.shape) == scores and ignore_index is not None:
        raise RuntimeError("linear_cross_entropy: targets that are probabilities have no ignore_index")

    def loss(input: Tensor, linear_weight: Tensor, linear_bias: Tensor | None) -> Tensor:
        return _functional.linear_cross_entropy(
            input,
            linear_weight,
            target,
            linear_bias=linear_bias,
            weight=weight,
            reduction=reduction,
            ignore_index=-100 if ignore_index is None else ignore_index,
            label_smoothing=label_smoothing,
        )

    probabilities = target.dtype == input.dtype and not target.requires_grad
    in_blocks = linear_weight.dim() == 2 and label_smoothing == 0.0 and (target.dtype == _plimsoll.int64 or probabilities)
    if options is None or reduction == "none" or not in_blocks:
        return loss(input, linear_weight, linear_bias)
    return _Once.apply(input, linear_weight, linear_bias, loss)  # type: ignore[no-any-return]


class _Once(Function):
    """A loss whose gradients are made with it."""

    @staticmethod
    def forward(ctx: Any, input: Tensor, weight: Tensor, bias: Tensor | None, loss: Callable[..., Tensor]) -> Tensor:
        wanted = [tensor is not None and tensor.requires_grad for tensor in (input, weight, bias)]
        leaves = [
            None if tensor is None else tensor.detach().requires_grad_(wants)
            for tensor, wants in zip((input, weight, bias), wanted, strict=True)
        ]
        if not any(wanted):
            return loss(*leaves)
        with enable_grad():
            result = loss(*leaves)
            gradients = iter(_plimsoll.grad([result], [leaf for leaf, wants in zip(leaves, wanted, strict=True) if wants]))
        ctx.save_for_backward(*(next(gradients) if wants else None for wants in wanted))
        return result.detach()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        return *(None if kept is None else kept * grad for kept in ctx.saved_tensors), None
