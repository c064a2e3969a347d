"""Losses of a linear map's results."""

from __future__ import annotations

from typing import Any

from .._plimsoll import Tensor
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

    Scores of float32 and float64 never exist whole, with any `options`: PyTorch's say how large its blocks are, and blocks
    here are as large as is good for the machine."""
    reduction = named(None, None, reduction)
    if not 1 <= input.dim() <= 2:
        raise RuntimeError(f"linear_cross_entropy: the input needs one dimension, or two, and has {input.dim()}")
    if linear_weight.dim() < 2:
        raise RuntimeError(f"linear_cross_entropy: linear_weight needs two or more dimensions, and has {linear_weight.dim()}")
    scores = (*input.shape[:-1], *linear_weight.shape[:-1])
    if tuple(target.shape) == scores and ignore_index is not None:
        raise RuntimeError("linear_cross_entropy: targets that are probabilities have no ignore_index")
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
