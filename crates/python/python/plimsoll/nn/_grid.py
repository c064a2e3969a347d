"""Sampling of images and volumes at places that a grid names, and grids of affine maps."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from .. import _plimsoll
from .._plimsoll import Tensor
from . import _functional


def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """The input, of [batch, channels, 2 or 3 spatial dimensions], at the places that `grid` names."""
    if mode not in ("bilinear", "nearest", "bicubic"):
        raise ValueError(f"grid_sample: the mode is 'bilinear', 'nearest' or 'bicubic', and not '{mode}'")
    if padding_mode not in ("zeros", "border", "reflection"):
        raise ValueError(f"grid_sample: the padding is 'zeros', 'border' or 'reflection', and not '{padding_mode}'")
    return _functional.grid_sample(input, grid, mode, padding_mode, _decided(align_corners))


def _decided(align_corners: bool | None) -> bool:
    if align_corners is None:
        warnings.warn("align_corners is False unless it is given; it was True before PyTorch 1.3", stacklevel=3)
    return bool(align_corners)


def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """For each matrix of a batch the grid, of a result of this size, whose places it maps."""
    align_corners = _decided(align_corners)
    if not theta.dtype.is_floating_point:
        raise ValueError(f"affine_grid: theta must be of floating point, and is {theta.dtype}")
    sizes = [int(one) for one in size]
    if len(sizes) not in (4, 5):
        raise NotImplementedError(f"affine_grid: sizes have 4 elements, or 5, and not {len(sizes)}")
    spatial = sizes[2:]
    if theta.dim() != 3 or list(theta.shape[1:]) != [len(spatial), len(spatial) + 1]:
        raise ValueError(
            f"affine_grid: the size {sizes} needs matrices of shape [batch, {len(spatial)}, {len(spatial) + 1}], and theta "
            f"has {list(theta.shape)}"
        )
    if align_corners and min(spatial) == 1:
        warnings.warn("affine_grid: with align_corners=True a dimension of one pixel is its centre", stacklevel=2)
    elif min(sizes) <= 0:
        raise ValueError(f"affine_grid: sizes must be above 0, and are {sizes}")
    if theta.shape[0] != sizes[0]:
        raise RuntimeError(f"affine_grid: there are {theta.shape[0]} matrices for a batch of {sizes[0]}")
    # Places along each dimension, the last first, and a one for the shift.
    places = [_along(theta, count, align_corners) for count in reversed(spatial)]
    parts = []
    for dim, place in enumerate(places):
        shape = [1] * len(spatial)
        shape[len(spatial) - 1 - dim] = -1
        parts.append(place.reshape(shape).expand(spatial))
    parts.append(_plimsoll.ones(spatial, dtype=theta.dtype, device=theta.device))
    base = _plimsoll.stack(parts, -1).reshape(1, -1, len(parts)).expand([sizes[0], -1, -1])
    return base.bmm(theta.transpose(1, 2)).reshape([sizes[0], *spatial, len(spatial)])


def _along(theta: Tensor, count: int, align_corners: bool) -> Tensor:
    if count <= 1:
        return _plimsoll.zeros([count], dtype=theta.dtype, device=theta.device)
    places = _plimsoll.linspace(-1, 1, count, dtype=theta.dtype, device=theta.device)
    return places if align_corners else places * (count - 1) / count
