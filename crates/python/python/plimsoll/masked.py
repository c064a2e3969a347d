"""Reductions and normalizations of the elements that a mask leaves: `torch.masked`, in terms of the other operations.

What the mask hides is replaced by what changes nothing: 0 in a sum, 1 in a product, the lowest number in a maximum.
"""

from __future__ import annotations

from typing import Any

from . import _plimsoll as pl
from .linalg import vector_norm as _vector_norm
from ._plimsoll import Tensor

__all__ = [
    "amax",
    "amin",
    "argmax",
    "argmin",
    "cumprod",
    "cumsum",
    "log_softmax",
    "logaddexp",
    "logsumexp",
    "mean",
    "median",
    "norm",
    "normalize",
    "prod",
    "softmax",
    "softmin",
    "std",
    "sum",
    "var",
]

Dims = int | tuple[int, ...] | list[int] | None

_HIGHEST = {pl.uint8: 255, pl.int8: 2**7 - 1, pl.int16: 2**15 - 1, pl.int32: 2**31 - 1, pl.int64: 2**63 - 1}
_LOWEST = {pl.uint8: 0, pl.int8: -(2**7), pl.int16: -(2**15), pl.int32: -(2**31), pl.int64: -(2**63)}
_WHOLE = (*_HIGHEST, pl.bool)


def _dims(dim: Dims, rank: int) -> tuple[int, ...]:
    """The dimensions counted from the first; nothing means all."""
    given = range(rank) if dim is None else (dim,) if isinstance(dim, int) else dim
    rank = max(rank, 1)
    result: list[int] = []
    for one in given:
        if not -rank <= one < rank:
            raise IndexError(f"dimension {one} is out of range for a tensor of {rank} dimensions")
        if one % rank in result:
            raise RuntimeError(f"dimension {one} appears twice in {dim}")
        result.append(one % rank)
    return tuple(result)


def _hidden(input: Tensor, mask: Tensor | None, value: Any) -> Tensor:
    """The input with `value` where the mask does not hold."""
    if mask is None:
        return input
    return pl.where(mask, input, pl.full([], value, dtype=input.dtype, device=input.device))


def _counted(input: Tensor, dtype: Any) -> Any:
    """The dtype of a sum or product: integers are added up as int64."""
    return dtype or (pl.int64 if input.dtype in _WHOLE else input.dtype)


def _lowest(dtype: Any) -> Any:
    return _LOWEST.get(dtype, float("-inf"))


def _highest(dtype: Any) -> Any:
    return _HIGHEST.get(dtype, float("inf"))


def sum(input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """The sum of what the mask leaves."""
    whole = _counted(input, dtype)
    return pl.sum(_hidden(input.to(whole), mask, 0), _dims(dim, input.ndim), keepdim, dtype=whole)


def prod(input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """The product of what the mask leaves."""
    result = _hidden(input.to(_counted(input, dtype)), mask, 1)
    for one in sorted(_dims(dim, input.ndim), reverse=True):
        result = pl.prod(result, one, keepdim)
    return result


def cumsum(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """Running sums of what the mask leaves."""
    dtype = dtype or input.dtype
    return pl.cumsum(_hidden(input, mask, 0), _dims(dim, input.ndim)[0], dtype=dtype)


def cumprod(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """Running products of what the mask leaves."""
    dtype = dtype or input.dtype
    return pl.cumprod(_hidden(input, mask, 1), _dims(dim, input.ndim)[0], dtype=dtype)


def amax(input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """The largest of what the mask leaves."""
    input = input.to(dtype or input.dtype)
    return pl.amax(_hidden(input, mask, _lowest(input.dtype)), _dims(dim, input.ndim), keepdim)


def amin(input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """The smallest of what the mask leaves."""
    input = input.to(dtype or input.dtype)
    return pl.amin(_hidden(input, mask, _highest(input.dtype)), _dims(dim, input.ndim), keepdim)


def argmax(
    input: Tensor, dim: int | None = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """Where the largest of what the mask leaves is, in the dtype of the input as in PyTorch."""
    return pl.argmax(_hidden(input, mask, _lowest(input.dtype)), dim, keepdim).to(dtype or input.dtype)


def argmin(
    input: Tensor, dim: int | None = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """Where the smallest of what the mask leaves is, in the dtype of the input as in PyTorch."""
    return pl.argmin(_hidden(input, mask, _highest(input.dtype)), dim, keepdim).to(dtype or input.dtype)


def _count(input: Tensor, dims: tuple[int, ...], keepdim: bool, mask: Tensor | None) -> Tensor:
    """How many elements the mask leaves."""
    there = pl.ones(input.shape, dtype=pl.int64, device=input.device)
    return pl.sum(_hidden(there, mask, 0), dims, keepdim)


def mean(input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """The mean of what the mask leaves."""
    dims = _dims(dim, input.ndim)
    total = sum(input, dims, keepdim=keepdim, dtype=dtype or input.dtype, mask=mask)
    return total / _count(input, dims, keepdim, mask)


def median(
    input: Tensor, dim: int = -1, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """The lower median of what the mask leaves."""
    input = input.to(dtype or input.dtype)
    if input.dtype in _WHOLE:
        raise ValueError("the masked median is that of floats; convert with `to` first")
    dim = _dims(dim, input.ndim)[0]
    if input.ndim == 0:
        return _hidden(input, mask, float("nan")).clone()
    if bool(pl.any(input != input)):
        raise ValueError("the masked median of NaN is not defined")
    return pl.nanmedian(_hidden(input, mask, float("nan")), dim, keepdim)[0]


def norm(
    input: Tensor,
    ord: float | None = 2.0,
    dim: Dims = None,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The norm of what the mask leaves."""
    input = input.to(dtype or input.dtype)
    ord = 2.0 if ord is None else float(ord)
    hidden = _hidden(input, mask, float("inf") if ord < 0 else 0)
    return _vector_norm(hidden, ord, _dims(dim, input.ndim), keepdim)


def _variance(
    input: Tensor, dim: Dims, correction: float, keepdim: bool, dtype: Any, mask: Tensor | None, root: bool
) -> Tensor:
    dtype = dtype or (pl.float32 if input.dtype in _WHOLE else input.dtype)
    # Halves are added up in float32.
    wide = pl.float32 if dtype in (pl.float16, pl.bfloat16) else dtype
    dims = _dims(dim, input.ndim)
    input = input.to(wide)
    count = _count(input, dims, True, mask)
    centre = pl.sum(_hidden(input, mask, 0), dims, True) / count
    apart = _hidden(input - centre, mask, 0)
    squares = pl.sum(apart * apart, dims, keepdim)
    if not keepdim:
        count = pl.reshape(count, squares.shape)
    rest = count - correction
    result = squares / pl.maximum(rest, pl.zeros_like(rest))
    return (pl.sqrt(result) if root else result).to(dtype)


def _correction(unbiased: bool | None, correction: float | None) -> float:
    if unbiased is not None and correction is not None:
        raise RuntimeError("give one of unbiased and correction")
    if correction is not None:
        return correction
    return 0 if unbiased is False else 1


def var(
    input: Tensor,
    dim: Dims = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The variance of what the mask leaves."""
    return _variance(input, dim, _correction(unbiased, correction), keepdim, dtype, mask, False)


def std(
    input: Tensor,
    dim: Dims = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The standard deviation of what the mask leaves."""
    return _variance(input, dim, _correction(unbiased, correction), keepdim, dtype, mask, True)


def softmax(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """The softmax of what the mask leaves."""
    input = input.to(dtype or input.dtype)
    return pl.softmax(_hidden(input, mask, float("-inf")), _dims(dim, input.ndim)[0])


def log_softmax(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """The logarithm of the softmax of what the mask leaves."""
    input = input.to(dtype or input.dtype)
    return pl.log_softmax(_hidden(input, mask, float("-inf")), _dims(dim, input.ndim)[0])


def softmin(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """The softmax of the negative of what the mask leaves."""
    input = input.to(dtype or input.dtype)
    return pl.softmax(-_hidden(input, mask, float("inf")), _dims(dim, input.ndim)[0])


def logsumexp(
    input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """The logarithm of the sum of exponentials of what the mask leaves."""
    dims = _dims(dim, input.ndim)
    return pl.logsumexp(_hidden(input, mask, _lowest(input.dtype)), dims, keepdim).to(dtype or input.dtype)


def logaddexp(
    input: Tensor,
    other: Tensor,
    *,
    dtype: Any = None,
    input_mask: Tensor | None = None,
    other_mask: Tensor | None = None,
) -> Tensor:
    """The logarithm of the sum of both exponentials, of what a mask of each leaves."""
    lowest = _lowest(input.dtype)
    result = pl.logaddexp(_hidden(input, input_mask, lowest), _hidden(other, other_mask, _lowest(other.dtype)))
    return result.to(dtype or input.dtype)


def normalize(
    input: Tensor, ord: float, dim: int, *, eps: float = 1e-12, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """What the mask leaves over its norm."""
    input = input.to(dtype or input.dtype)
    size = norm(input, ord, dim, keepdim=True, mask=mask)
    least = pl.full([], eps, dtype=input.dtype, device=input.device)
    return _hidden(input, mask, 0) / pl.maximum(size, least)
