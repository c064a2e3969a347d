"""Lengths of vectors and distances between them."""

from __future__ import annotations

import math

from .. import _plimsoll
from .._listed import listed, listed_as
from .._modes import no_grad
from .._plimsoll import Tensor


@listed_as("norm")
def length(x: Tensor, p: float, dim: int, keepdim: bool) -> Tensor:
    """The p-norm along `dim`; its gradient at 0 is 0, as PyTorch's."""
    if not x.dtype.is_floating_point:
        raise RuntimeError(f"norms need floating-point elements, and these are {x.dtype}; convert them with `to`")
    if x.dtype in (_plimsoll.float16, _plimsoll.bfloat16):
        # Sums of halves are kept in single precision.
        return length(x.float(), p, dim, keepdim).to(x.dtype)
    if p == 0:
        return (x != 0).to(x.dtype).sum(dim, keepdim)
    if p == 1:
        return x.abs().sum(dim, keepdim)
    if math.isinf(p):
        return x.abs().amax(dim, keepdim) if p > 0 else x.abs().amin(dim, keepdim)
    powers = (x * x if p == 2 else x.abs() ** p).sum(dim, keepdim)
    nothing = powers == 0
    # The root of 0 has no slope: it is taken of 1 there, and left out.
    safe = _plimsoll.where(nothing, 1.0, powers)
    root = safe.sqrt() if p == 2 else safe ** (1.0 / p)
    return _plimsoll.where(nothing, 0.0, root)


def at_least(x: Tensor, least: float) -> Tensor:
    """`x`, or `least` where that is more; the gradient passes where x is more."""
    return _plimsoll.clamp_min(x, least)


def raised_without_gradient(x: Tensor, least: float) -> Tensor:
    """`x`, or `least` where that is more; the gradient is x's everywhere."""
    with no_grad():
        missing = at_least(x, least) - x
    return x + missing


@listed
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """The cosine of the angle between vectors along `dim`."""
    x1, x2 = (x1 + 0 * x2, x2 + 0 * x1) if x1.dtype != x2.dtype else (x1, x2)
    shape = (x1.detach() + x2.detach()).shape if x1.shape != x2.shape else x1.shape
    x1, x2 = x1.expand(shape), x2.expand(shape)
    one = x1 / raised_without_gradient(length(x1, 2, dim, True), eps)
    two = x2 / raised_without_gradient(length(x2, 2, dim, True), eps)
    return (one * two).sum(dim)


def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """The p-norm of the differences along the last dimension."""
    return length(x1 - x2 + eps, p, -1, keepdim)


def normalize(
    input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: Tensor | None = None
) -> Tensor:
    """Vectors along `dim` divided by their p-norm, or by `eps` if that is more."""
    return _plimsoll.div(input, at_least(length(input, p, dim, True), eps), out=out)
