"""Larger images from smaller ones."""

from __future__ import annotations

from typing import Any

from ..._plimsoll import Tensor
from .. import functional as F
from ._sizes import Floats, Ints
from .module import Module


class Upsample(Module):
    """Interpolates to a size, or by a factor."""

    def __init__(
        self,
        size: Ints | None = None,
        scale_factor: Floats | None = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        super().__init__()
        self.name = type(self).__name__
        self.size = size
        self.scale_factor: Any = scale_factor
        if isinstance(scale_factor, tuple):
            self.scale_factor = tuple(float(factor) for factor in scale_factor)
        elif scale_factor:
            self.scale_factor = float(scale_factor)  # type: ignore[arg-type]
        self.mode = mode
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.interpolate(
            input, self.size, self.scale_factor, self.mode, self.align_corners,
            recompute_scale_factor=self.recompute_scale_factor,
        )  # fmt: skip

    def extra_repr(self) -> str:
        size = f"size={self.size!r}" if self.scale_factor is None else f"scale_factor={self.scale_factor!r}"
        return f"{size}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """Repeats the elements of an image."""

    def __init__(self, size: Ints | None = None, scale_factor: Floats | None = None) -> None:
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample):
    """Interpolates an image along both sides; corners stay where they are."""

    def __init__(self, size: Ints | None = None, scale_factor: Floats | None = None) -> None:
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)
