"""Losses that ask for a margin between what is right and what is not."""

from __future__ import annotations

from collections.abc import Callable

from .. import _plimsoll
from .._listed import listed
from .._plimsoll import Tensor
from . import _functional
from ._distance import at_least, pairwise_distance
from ._reduction import named, reduced


@listed
def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """`log(1 + exp(-target * input))` for targets of 1 and -1."""
    reduction = named(size_average, reduce, reduction)
    return reduced((-target * input).exp().log1p(), reduction)


@listed
def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Distances of what is alike (target 1), and what others (target -1) lack to the margin."""
    reduction = named(size_average, reduce, reduction)
    lacking = _plimsoll.where(target == 1, 0.0, at_least(margin - input, 0.0))
    return reduced(lacking + _plimsoll.where(target == -1, 0.0, input), reduction)


@listed
def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """What the first input lacks to be above the second (target 1) or below (target -1)."""
    reduction = named(size_average, reduce, reduction)
    if input1.dim() != input2.dim() or input1.dim() != target.dim():
        raise RuntimeError(
            f"margin_ranking_loss: the inputs must have the same number of dimensions, and have the shapes "
            f"{tuple(input1.shape)}, {tuple(input2.shape)} and {tuple(target.shape)}"
        )
    return reduced(at_least(-target * (input1 - input2) + float(margin), 0.0), reduction)


@listed
def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """1 minus the cosine of what is alike (target 1), and the cosine above the margin of others (target -1)."""
    reduction = named(size_average, reduce, reduction)
    dim = target.dim()
    if dim > 1 or input1.dim() != dim + 1 or input2.dim() != dim + 1:
        raise RuntimeError(
            f"{dim}D target tensor expects {dim + 1}D input tensors, but found inputs with sizes "
            f"{tuple(input1.shape)} and {tuple(input2.shape)}"
        )
    product = (input1 * input2).sum(dim)
    squares = ((input1 * input1).sum(dim) + 1e-12) * ((input2 * input2).sum(dim) + 1e-12)
    cosine = product / squares.sqrt()
    alike = _plimsoll.where(target == 1, 1 - cosine, 0.0)
    return reduced(alike + _plimsoll.where(target == -1, at_least(cosine - margin, 0.0), 0.0), reduction)


@listed
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """What the negative lacks to be farther from the anchor than the positive by the margin."""
    reduction = named(size_average, reduce, reduction)

    def distance(a: Tensor, b: Tensor) -> Tensor:
        return pairwise_distance(a, b, p, eps)

    return triplet_margin_with_distance_loss(
        anchor, positive, negative, distance_function=distance, margin=margin, swap=swap, reduction=reduction
    )


def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """`triplet_margin_loss` with a distance of one's own."""
    reduction = named(None, None, reduction)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    if not anchor.dim() == positive.dim() == negative.dim():
        raise RuntimeError(
            f"anchor, positive and negative must have the same number of dimensions, and have {anchor.dim()}, "
            f"{positive.dim()} and {negative.dim()}"
        )
    distance = distance_function or pairwise_distance
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = _plimsoll.minimum(far, distance(positive, negative))
    return reduced(at_least(margin + near - far, 0.0), reduction)


def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The mean over the classes of each label's cross entropy."""
    reduction = named(size_average, reduce, reduction)
    loss = -(target * _functional.logsigmoid(input) + (1 - target) * _functional.logsigmoid(-input))
    if weight is not None:
        loss = loss * weight
    return reduced(loss.sum(input.dim() - 1) / input.size(input.dim() - 1), reduction)


def _rows(name: str, input: Tensor, target: Tensor, labels: bool) -> tuple[Tensor, Tensor]:
    """The input as [rows, classes], and its targets with a row each."""
    if not input.dtype.is_floating_point or input.dtype in (_plimsoll.float16, _plimsoll.bfloat16):
        raise RuntimeError(f"{name} is for float32 and float64, and the input is {input.dtype}; convert it with `to`")
    fits = input.dim() < 3 and (input.numel() > 0 or (input.dim() == 2 and input.size(1) != 0))
    wanted = tuple(input.shape) if labels else tuple(input.shape[:-1])
    alone = () if labels else (1,)
    if not fits or tuple(target.shape) not in (wanted, alone if input.numel() == 1 or not labels else wanted):
        raise RuntimeError(
            f"{name}: an input of shape {tuple(input.shape)} and a target of shape {tuple(target.shape)} do not go together"
        )
    rows = input if input.dim() == 2 else input.reshape(1, -1)
    return rows, target.reshape(rows.shape if labels else (rows.size(0),))


@listed
def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """What other classes lack to be below the target's score by the margin, over the number of classes."""
    reduction = named(size_average, reduce, reduction)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.dim() != 1:
        raise ValueError("weight must be one-dimensional")
    rows, classes = _rows("multi_margin_loss", input, target, labels=False)
    if weight is not None and weight.numel() != rows.size(1):
        raise RuntimeError(f"inconsistent weight size, expected {rows.size(1)} but got {tuple(weight.shape)}")
    own = classes.unsqueeze(1)
    lacking = at_least(margin - rows.gather(1, own) + rows, 0.0)
    lacking = lacking if p == 1 else lacking * lacking
    if weight is not None:
        lacking = lacking * weight[classes].unsqueeze(1)
    others = own != _plimsoll.arange(rows.size(1), device=rows.device)
    loss = _plimsoll.where(others, lacking, 0.0).sum(1) / rows.size(1)
    return reduced(loss if input.dim() == 2 else loss.squeeze(0), reduction)


@listed
def multilabel_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """What classes that are no labels lack to be below each label's score by 1; a label of -1 ends the list."""
    reduction = named(size_average, reduce, reduction)
    rows, labels = _rows("multilabel_margin_loss", input, target, labels=True)
    count = rows.size(1)
    if labels.numel() and bool(((labels < -1) + (labels >= count)).any()):
        raise RuntimeError("target out of range")
    places = _plimsoll.arange(count, device=rows.device)
    # A label counts if no -1 stands before it.
    ended = (labels == -1).to(_plimsoll.float32).matmul((places.unsqueeze(1) <= places).to(_plimsoll.float32)) > 0
    # No row has more labels than this: what follows has a matrix of all classes for each.
    most = int((~ended).sum(1).max()) if labels.numel() else 0
    labels, ended = labels[:, :most], ended[:, :most]
    named_labels = _plimsoll.where(ended, -1, labels)
    is_label = (named_labels.unsqueeze(2) == places).any(1)
    scores = rows.gather(1, _plimsoll.where(ended, 0, labels))
    lacking = at_least(1 - scores.unsqueeze(2) + rows.unsqueeze(1), 0.0)
    lacking = _plimsoll.where(ended.unsqueeze(2), 0.0, _plimsoll.where(is_label.unsqueeze(1), 0.0, lacking))
    loss = lacking.sum((1, 2)) / count
    return reduced(loss if input.dim() == 2 else loss.squeeze(0), reduction)
