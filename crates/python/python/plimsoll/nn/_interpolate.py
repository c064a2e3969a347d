"""Resampling of images and other grids."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence

from .._plimsoll import Tensor
from . import _functional

# The dimensions that an input has in each mode.
RANKS = {"linear": 3, "bilinear": 4, "bicubic": 4, "trilinear": 5}


def interpolate(
    input: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """The input, of [batch, channels, 1 to 3 spatial dimensions], with other spatial sizes."""
    spatial = input.dim() - 2
    if mode in ("nearest", "area", "nearest-exact"):
        if align_corners is not None:
            raise ValueError("align_corners option can only be set with the interpolating modes: linear | bilinear | "
                             "bicubic | trilinear")
    elif align_corners is None:
        align_corners = False
    if antialias and (mode not in ("bilinear", "bicubic") or input.dim() != 4):
        raise ValueError("Anti-alias option is restricted to bilinear and bicubic modes and requires a 4-D tensor as input")
    if (size is None) == (scale_factor is None):
        raise ValueError("only one of size or scale_factor should be defined, and one must be")
    if mode in RANKS and input.dim() != RANKS[mode] or spatial not in (1, 2, 3) or mode not in (
        *RANKS, "nearest", "nearest-exact", "area"
    ):
        raise NotImplementedError(f"interpolate: the mode '{mode}' does not take an input of {input.dim()} dimensions")
    factors: list[float] | None = None
    if size is not None:
        given = size if isinstance(size, (list, tuple)) else [size]
        if any(isinstance(one, (float, str)) for one in given):
            raise TypeError(
                "expected size to be one of int or Tuple[int] or Tuple[int, int] or Tuple[int, int, int], but got size with types "
                f"{[type(one) for one in given]}"
            )
        sizes = [int(one) for one in size] if isinstance(size, (list, tuple)) else [int(size)] * spatial  # type: ignore[arg-type]
        if len(sizes) != spatial:
            raise ValueError(f"size has {len(sizes)} elements, and the input {spatial} spatial dimensions")
        if recompute_scale_factor:
            raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
    else:
        given = scale_factor if isinstance(scale_factor, (list, tuple)) else [scale_factor] * spatial
        factors = [float(one) for one in given]  # type: ignore[arg-type]
        if len(factors) != spatial:
            raise ValueError(f"scale_factor has {len(factors)} elements, and the input {spatial} spatial dimensions")
        sizes = [math.floor(float(extent) * factor) for extent, factor in zip(input.shape[2:], factors, strict=True)]
        if recompute_scale_factor:
            factors = None
    return _functional.interpolate(input, sizes, mode, bool(align_corners), factors, antialias)


def _upsample_bilinear2d_aa(
    input: Tensor,
    output_size: Sequence[int] | None,
    align_corners: bool,
    scales_h: float | None = None,
    scales_w: float | None = None,
    *,
    scale_factors: Sequence[float] | None = None,
) -> Tensor:
    """`interpolate` bilinearly without aliasing, under PyTorch's own name."""
    given = scale_factors is not None or scales_h is not None or scales_w is not None
    factors = list(scale_factors or (scales_h or 0.0, scales_w or 0.0)) if given else None
    if output_size is None:
        if scale_factors is None:
            raise RuntimeError("_upsample_bilinear2d_aa: give output_size or scale_factors")
        output_size = [math.floor(extent * factor) for extent, factor in zip(input.shape[2:], scale_factors, strict=True)]
    return _functional.interpolate(input, list(output_size), "bilinear", align_corners, factors, True)


def upsample(
    input: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """`interpolate` under its name of old."""
    warnings.warn("upsample is interpolate's name of old; write interpolate", stacklevel=2)
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(
    input: Tensor, size: int | Sequence[int] | None = None, scale_factor: float | Sequence[float] | None = None
) -> Tensor:
    """`interpolate` by the nearest pixel."""
    warnings.warn("upsample_nearest is interpolate's name of old; write interpolate", stacklevel=2)
    return interpolate(input, size, scale_factor, mode="nearest")


def upsample_bilinear(
    input: Tensor, size: int | Sequence[int] | None = None, scale_factor: float | Sequence[float] | None = None
) -> Tensor:
    """`interpolate` bilinearly, with aligned corners."""
    warnings.warn("upsample_bilinear is interpolate's name of old; write interpolate", stacklevel=2)
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)
