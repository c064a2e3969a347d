"""Distinct elements: one tensor, or several where more is asked for."""

from __future__ import annotations

from ._plimsoll import Tensor

_unique = Tensor.unique
_unique_consecutive = Tensor.unique_consecutive


def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Tensor | tuple[Tensor, ...]:
    """The distinct elements in order, or the distinct slices along `dim`."""
    results = _unique(input, sorted, return_inverse, return_counts, dim)
    return tuple(results) if return_inverse or return_counts else results[0]


def unique_consecutive(
    input: Tensor,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Tensor | tuple[Tensor, ...]:
    """The elements without those that equal the one before."""
    results = _unique_consecutive(input, return_inverse, return_counts, dim)
    return tuple(results) if return_inverse or return_counts else results[0]


Tensor.unique = unique  # type: ignore[method-assign, assignment]
Tensor.unique_consecutive = unique_consecutive  # type: ignore[method-assign, assignment]
