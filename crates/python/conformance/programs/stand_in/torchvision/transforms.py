"""Transforms of pictures and tensors. Sizes change by the nearest pixel: both sides of a comparison get the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy
import torch

from .datasets import Picture


class Compose:
    def __init__(self, transforms: Sequence[Callable[[Any], Any]]) -> None:
        self.transforms = transforms

    def __call__(self, picture: Any) -> Any:
        for transform in self.transforms:
            picture = transform(picture)
        return picture


class ToTensor:
    """From bytes [height, width, channels] to numbers from 0 to 1 [channels, height, width]."""

    def __call__(self, picture: Any) -> Any:
        pixels = picture.pixels if isinstance(picture, Picture) else picture
        pixels = pixels[:, :, None] if pixels.ndim == 2 else pixels
        return torch.from_numpy(numpy.ascontiguousarray(pixels.transpose(2, 0, 1))).float().div(255)


class Normalize:
    def __init__(self, mean: Sequence[float], std: Sequence[float]) -> None:
        self.mean, self.std = mean, std

    def __call__(self, tensor: Any) -> Any:
        mean, std = (torch.tensor(values, dtype=tensor.dtype).view(-1, 1, 1) for values in (self.mean, self.std))
        return (tensor - mean) / std


class Lambda:
    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function = function

    def __call__(self, picture: Any) -> Any:
        return self.function(picture)


class Resize:
    def __init__(self, size: int | Sequence[int], *args: Any, **named: Any) -> None:
        self.size = (size, size) if isinstance(size, int) else tuple(size)

    def __call__(self, picture: Picture) -> Picture:
        width, height = picture.size
        rows = numpy.arange(self.size[0]) * height // self.size[0]
        columns = numpy.arange(self.size[1]) * width // self.size[1]
        return Picture(picture.pixels[rows][:, columns])


class CenterCrop:
    def __init__(self, size: int) -> None:
        self.size = size

    def __call__(self, picture: Picture) -> Picture:
        width, height = picture.size
        top, left = (height - self.size) // 2, (width - self.size) // 2
        return Picture(picture.pixels[top : top + self.size, left : left + self.size])


class Pad:
    def __init__(self, padding: int) -> None:
        self.padding = padding

    def __call__(self, picture: Picture) -> Picture:
        around = (self.padding, self.padding)
        return Picture(numpy.pad(picture.pixels, (around, around, (0, 0))))


class RandomCrop:
    def __init__(self, size: int) -> None:
        self.size = size

    def __call__(self, picture: Picture) -> Picture:
        width, height = picture.size
        top = int(torch.randint(0, height - self.size + 1, (1,)))
        left = int(torch.randint(0, width - self.size + 1, (1,)))
        return Picture(picture.pixels[top : top + self.size, left : left + self.size])


class RandomHorizontalFlip:
    def __init__(self, p: float = 0.5) -> None:
        self.p = p

    def __call__(self, picture: Picture) -> Picture:
        return Picture(picture.pixels[:, ::-1]) if float(torch.rand(1)) < self.p else picture
