"""Pooling into as many windows as are asked for: adaptive ones, and windows drawn at random."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Union

from ..._plimsoll import Tensor
from .. import functional as F
from ._sizes import Floats, Ints, pair, triple
from .module import Module

_Sizes = Union[int, None, Sequence[Union[int, None]]]


class _AdaptiveAvgPoolNd(Module):
    """What adaptive mean pools share."""

    def __init__(self, output_size: _Sizes) -> None:
        super().__init__()
        self.output_size: Any = output_size

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class _AdaptiveMaxPoolNd(Module):
    """What adaptive max pools share."""

    def __init__(self, output_size: _Sizes, return_indices: bool = False) -> None:
        super().__init__()
        self.output_size: Any = output_size
        self.return_indices = return_indices

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd):
    """The largest values of so many windows over one dimension."""

    def forward(self, input: Tensor) -> Any:
        return F.adaptive_max_pool1d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd):
    """The largest values of so many windows over two dimensions."""

    def forward(self, input: Tensor) -> Any:
        return F.adaptive_max_pool2d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd):
    """The largest values of so many windows over three dimensions."""

    def forward(self, input: Tensor) -> Any:
        return F.adaptive_max_pool3d(input, self.output_size, self.return_indices)


class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd):
    """The means of so many windows over one dimension."""

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_avg_pool1d(input, self.output_size)


class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd):
    """The means of so many windows over two dimensions."""

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_avg_pool2d(input, self.output_size)


class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd):
    """The means of so many windows over three dimensions."""

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_avg_pool3d(input, self.output_size)


class FractionalMaxPool2d(Module):
    """The largest value of each window over two dimensions, of windows whose places are drawn."""

    def __init__(
        self,
        kernel_size: Ints,
        output_size: Ints | None = None,
        output_ratio: Floats | None = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size = pair(kernel_size)
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = None if output_size is None else pair(output_size)
        self.output_ratio = None if output_ratio is None else pair(output_ratio)
        _check_fractional("FractionalMaxPool2d", self.output_size, self.output_ratio)

    def forward(self, input: Tensor) -> Any:
        return F.fractional_max_pool2d(
            input, self.kernel_size, self.output_size, self.output_ratio, self.return_indices, self._random_samples
        )


class FractionalMaxPool3d(Module):
    """The largest value of each window over three dimensions, of windows whose places are drawn."""

    def __init__(
        self,
        kernel_size: Ints,
        output_size: Ints | None = None,
        output_ratio: Floats | None = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size = triple(kernel_size)
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = None if output_size is None else triple(output_size)
        self.output_ratio = None if output_ratio is None else triple(output_ratio)
        _check_fractional("FractionalMaxPool3d", self.output_size, self.output_ratio)

    def forward(self, input: Tensor) -> Any:
        return F.fractional_max_pool3d(
            input, self.kernel_size, self.output_size, self.output_ratio, self.return_indices, self._random_samples
        )


def _check_fractional(name: str, size: tuple[int, ...] | None, ratio: tuple[float, ...] | None) -> None:
    if size is None and ratio is None:
        raise ValueError(f"{name} requires specifying either an output size, or a pooling ratio")
    if size is not None and ratio is not None:
        raise ValueError("only one of output_size and output_ratio may be specified")
    if ratio is not None and not all(0 < share < 1 for share in ratio):
        raise ValueError(f"output_ratio must be between 0 and 1 (got {ratio})")
