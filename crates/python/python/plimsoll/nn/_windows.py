"""Functions over windows as PyTorch has them in `torch.nn.functional`: arguments that choose what comes out
(`return_indices`), sizes that may be left open, windows as columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import _plimsoll
from .._plimsoll import (
    Tensor,
    adaptive_avg_pool1d,
    avg_pool1d,
    channel_shuffle,
    conv1d,
    conv2d,
    conv3d,
    conv_transpose1d,
    conv_transpose2d,
    conv_transpose3d,
    pixel_shuffle,
    pixel_unshuffle,
    rand,
)

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool1d_with_indices",
    "adaptive_max_pool2d",
    "adaptive_max_pool2d_with_indices",
    "adaptive_max_pool3d",
    "adaptive_max_pool3d_with_indices",
    "avg_pool1d",
    "channel_shuffle",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "fold",
    "fractional_max_pool2d",
    "fractional_max_pool2d_with_indices",
    "fractional_max_pool3d",
    "fractional_max_pool3d_with_indices",
    "max_pool1d",
    "max_pool1d_with_indices",
    "max_pool2d",
    "max_pool2d_with_indices",
    "max_pool3d",
    "max_pool3d_with_indices",
    "pixel_shuffle",
    "pixel_unshuffle",
    "unfold",
]

Ints = int | Sequence[int]
OpenInts = int | None | Sequence[int | None]
Pair = tuple[Tensor, Tensor]


def max_pool(plain: Callable[..., Tensor], with_indices: Callable[..., Pair]) -> tuple[Callable[..., Any], Callable[..., Pair]]:
    """The two functions of one number of dimensions: the largest of each window, or these and their places."""

    def pooled(
        input: Tensor,
        kernel_size: Ints,
        stride: Ints | None = None,
        padding: Ints = 0,
        dilation: Ints = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        function: Callable[..., Any] = with_indices if return_indices else plain
        return function(input, kernel_size, () if stride is None else stride, padding, dilation, ceil_mode)

    def both(
        input: Tensor,
        kernel_size: Ints,
        stride: Ints | None = None,
        padding: Ints = 0,
        dilation: Ints = 1,
        ceil_mode: bool = False,
        return_indices: bool = True,
    ) -> Pair:
        return with_indices(input, kernel_size, () if stride is None else stride, padding, dilation, ceil_mode)

    return pooled, both


max_pool1d, max_pool1d_with_indices = max_pool(_plimsoll.max_pool1d, _plimsoll.max_pool1d_with_indices)
max_pool2d, max_pool2d_with_indices = max_pool(_plimsoll.max_pool2d, _plimsoll.max_pool2d_with_indices)
max_pool3d, max_pool3d_with_indices = max_pool(_plimsoll.max_pool3d, _plimsoll.max_pool3d_with_indices)


def filled(output_size: OpenInts, input: Tensor) -> Ints:
    """The sizes asked for, with the input's where they are left open."""
    if output_size is None or isinstance(output_size, int):
        return input.shape[-1] if output_size is None else output_size
    sizes = list(output_size)
    if input.dim() <= len(sizes):
        raise ValueError(f"Input dimension should be at least {len(sizes) + 1}")
    own = input.shape[input.dim() - len(sizes) :]
    return [own[at] if size is None else size for at, size in enumerate(sizes)]


def adaptive_avg_pool2d(input: Tensor, output_size: OpenInts) -> Tensor:
    return _plimsoll.adaptive_avg_pool2d(input, filled(output_size, input))


def adaptive_avg_pool3d(input: Tensor, output_size: OpenInts) -> Tensor:
    return _plimsoll.adaptive_avg_pool3d(input, filled(output_size, input))


def adaptive_max_pool(function: Callable[..., Pair]) -> tuple[Callable[..., Any], Callable[..., Pair]]:
    """The two functions of one number of dimensions."""

    def pooled(input: Tensor, output_size: OpenInts, return_indices: bool = False) -> Any:
        results = function(input, filled(output_size, input))
        return results if return_indices else results[0]

    def both(input: Tensor, output_size: OpenInts, return_indices: bool = True) -> Pair:
        return function(input, filled(output_size, input))

    return pooled, both


adaptive_max_pool1d, adaptive_max_pool1d_with_indices = adaptive_max_pool(_plimsoll.adaptive_max_pool1d)
adaptive_max_pool2d, adaptive_max_pool2d_with_indices = adaptive_max_pool(_plimsoll.adaptive_max_pool2d)
adaptive_max_pool3d, adaptive_max_pool3d_with_indices = adaptive_max_pool(_plimsoll.adaptive_max_pool3d)


def fractional_max_pool(function: Callable[..., Pair], dimensions: int) -> tuple[Callable[..., Any], Callable[..., Pair]]:
    """The two functions of one number of dimensions."""
    name = f"fractional_max_pool{dimensions}d"

    def both(
        input: Tensor,
        kernel_size: Ints,
        output_size: Ints | None = None,
        output_ratio: float | Sequence[float] | None = None,
        return_indices: bool = True,
        _random_samples: Tensor | None = None,
    ) -> Pair:
        if output_size is None and output_ratio is None:
            raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
        if output_size is None:
            ratios = [output_ratio] * dimensions if isinstance(output_ratio, (int, float)) else list(output_ratio or ())
            if len(ratios) > dimensions:
                raise ValueError(f"{name} requires output_ratio to either be a single Int or tuple of Ints.")
            output_size = [int(size * ratio) for size, ratio in zip(input.shape[-dimensions:], ratios)]
        if _random_samples is None:
            batch = 1 if input.dim() == dimensions + 1 else input.shape[0]
            channels = input.shape[-dimensions - 1]
            _random_samples = rand(batch, channels, dimensions, dtype=input.dtype, device=input.device)
        elif dimensions == 3 and input.dim() == 4:
            # As in PyTorch, samples for more are taken too.
            _random_samples = _random_samples[:1]
        return function(input, kernel_size, output_size, _random_samples)

    def pooled(
        input: Tensor,
        kernel_size: Ints,
        output_size: Ints | None = None,
        output_ratio: float | Sequence[float] | None = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> Any:
        results = both(input, kernel_size, output_size, output_ratio, True, _random_samples)
        return results if return_indices else results[0]

    return pooled, both


fractional_max_pool2d, fractional_max_pool2d_with_indices = fractional_max_pool(_plimsoll.fractional_max_pool2d, 2)
fractional_max_pool3d, fractional_max_pool3d_with_indices = fractional_max_pool(_plimsoll.fractional_max_pool3d, 3)


def unfold(input: Tensor, kernel_size: Ints, dilation: Ints = 1, padding: Ints = 0, stride: Ints = 1) -> Tensor:
    return _plimsoll.im2col(input, kernel_size, dilation, padding, stride)


def fold(
    input: Tensor, output_size: Ints, kernel_size: Ints, dilation: Ints = 1, padding: Ints = 0, stride: Ints = 1
) -> Tensor:
    return _plimsoll.col2im(input, output_size, kernel_size, dilation, padding, stride)
