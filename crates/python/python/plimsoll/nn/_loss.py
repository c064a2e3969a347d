"""Losses between elements or classes and their targets."""

from __future__ import annotations

import math
import warnings

from .. import _plimsoll
from .._listed import listed
from .._plimsoll import Tensor
from . import _functional
from ._distance import raised_without_gradient
from ._reduction import named, reduced, warn_of_sizes


def _weighted(loss: Tensor, weight: Tensor, input: Tensor, reduction: str, by_weight: bool) -> Tensor:
    if weight.shape != input.shape:
        raise ValueError("Weights and input must have the same size.")
    loss = loss * weight
    if by_weight and reduction == "mean":
        return loss.sum() / weight.sum()
    return reduced(loss, reduction)


def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """The squared differences."""
    warn_of_sizes(input, target)
    reduction = named(size_average, reduce, reduction)
    if weight is None:
        return _functional.mse_loss(input, target, reduction)
    return _weighted(_functional.mse_loss(input, target, "none"), weight, input, reduction, True)


def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """The sizes of the differences."""
    warn_of_sizes(input, target)
    reduction = named(size_average, reduce, reduction)
    if weight is None:
        return _functional.l1_loss(input, target, reduction)
    return _weighted(_functional.l1_loss(input, target, "none"), weight, input, reduction, True)


def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """The sizes of the differences; below `beta` a parabola."""
    warn_of_sizes(input, target)
    return _functional.smooth_l1_loss(input, target, named(size_average, reduce, reduction), beta)


def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Tensor | None = None
) -> Tensor:
    """Half the squared differences; above `delta` a line."""
    warn_of_sizes(input, target)
    reduction = named(None, None, reduction)
    if weight is None:
        return _functional.huber_loss(input, target, reduction, delta)
    return _weighted(_functional.huber_loss(input, target, "none", delta), weight, input, reduction, False)


def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Minus the log-likelihood of the targets, from probabilities."""
    reduction = named(size_average, reduce, reduction)
    if target.shape != input.shape:
        raise ValueError(
            f"the target has the size {tuple(target.shape)} and the input {tuple(input.shape)}; give both one size"
        )
    return _functional.binary_cross_entropy(input, target, weight, reduction)


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """Minus the log-likelihood of the targets, from logits."""
    reduction = named(size_average, reduce, reduction)
    if target.shape != input.shape:
        raise ValueError(f"Target size ({tuple(target.shape)}) must be the same as input size ({tuple(input.shape)})")
    return _functional.binary_cross_entropy_with_logits(input, target, weight, pos_weight, reduction)


@listed
def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """The Kullback-Leibler divergence of log-probabilities from target probabilities."""
    by_batch = reduction == "batchmean"
    if reduction == "mean" and size_average is None and reduce is None:
        warnings.warn(
            "reduction='mean' divides by the number of elements; the divergence divides by the batch, which is 'batchmean'",
            stacklevel=3,
        )
    reduction = named(size_average, reduce, "sum" if by_batch else reduction)
    if log_target:
        loss = target.exp() * (target - input)
    else:
        # 0 times the logarithm of 0 counts for nothing.
        loss = _plimsoll.where(target == 0, 0.0, target * target.log()) - target * input
    result = reduced(loss, reduction)
    return result / input.size(0) if by_batch and input.dim() != 0 else result


def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Minus the log-probabilities of the target classes."""
    reduction = named(size_average, reduce, reduction)
    return _functional.nll_loss(input, target, weight, reduction, ignore_index)


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """The cross entropy between scores and target classes or probabilities."""
    reduction = named(size_average, reduce, reduction)
    return _functional.cross_entropy(input, target, weight, reduction, ignore_index, label_smoothing)


@listed
def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: bool | None = None,
    eps: float = 1e-8,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Minus the log-likelihood of counts, without the terms that only the targets decide unless `full`."""
    reduction = named(size_average, reduce, reduction)
    loss = input.exp() - target * input if log_input else input - target * (input + eps).log()
    if full:
        stirling = target * target.log() - target + 0.5 * (2 * math.pi * target).log()
        loss = loss + _plimsoll.where(target <= 1, 0.0, stirling)
    return reduced(loss, reduction)


def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Tensor | float,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """Minus the log-likelihood of targets under normal distributions."""
    if not isinstance(var, Tensor):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        var = var * _plimsoll.ones_like(input)
    elif bool((var < 0).any()):
        raise ValueError("var has negative entry/entries")
    if var.shape != input.shape:
        one_size = input.dim() == var.dim() and sum(b for a, b in zip(input.shape, var.shape, strict=True) if a != b) == 1
        if tuple(input.shape[:-1]) == tuple(var.shape):
            var = var.unsqueeze(-1)
        elif not one_size:
            raise ValueError("var is of incorrect size")
    reduction = named(None, None, reduction)
    var = raised_without_gradient(var, eps)
    loss = 0.5 * (var.log() + (input - target) ** 2 / var)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return reduced(loss, reduction)
