"""Datasets of made-up images under the names of known ones: each class has a pattern of its own, and each image noise over it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
import torch
from torch.utils.data import Dataset

# Enough for fifty steps of 128 images without a second pass; small enough to be made in a moment.
TRAIN, TEST = 6400, 640
CLASSES = 10


class Picture:
    """An image of bytes [height, width, channels], in place of PIL's."""

    def __init__(self, pixels: numpy.ndarray) -> None:
        self.pixels = pixels

    @property
    def size(self) -> tuple[int, int]:
        return self.pixels.shape[1], self.pixels.shape[0]


class _Made(Dataset):
    side, channels = 28, 1
    classes = [str(number) for number in range(CLASSES)]

    def __init__(
        self,
        root: Any = None,
        train: bool = True,
        transform: Callable[[Any], Any] | None = None,
        target_transform: Callable[[Any], Any] | None = None,
        download: bool = False,
    ) -> None:
        count = TRAIN if train else TEST
        random = numpy.random.RandomState(0 if train else 1)
        coarse = numpy.random.RandomState(2).uniform(0, 255, (CLASSES, 4, 4, self.channels))
        # A mask keeps a margin dark, as the pixels around written digits are.
        patterns = numpy.kron(coarse, numpy.ones((1, self.side // 4, self.side // 4, 1)))
        patterns[:, [0, 1, -2, -1]] = 0
        patterns[:, :, [0, 1, -2, -1]] = 0
        labels = random.randint(0, CLASSES, count)
        noise = random.randint(-40, 41, (count, self.side, self.side, self.channels), dtype=numpy.int16)
        self.pixels = numpy.clip(patterns[labels].astype(numpy.int16) + noise, 0, 255).astype(numpy.uint8)
        self.targets = torch.from_numpy(labels.astype(numpy.int64))
        self.data = torch.from_numpy(self.pixels[..., 0] if self.channels == 1 else self.pixels)
        self.transform, self.target_transform = transform, target_transform

    # Names of torchvision's earlier releases.
    train_data = test_data = property(lambda self: self.data)
    train_labels = test_labels = property(lambda self: self.targets)

    def __len__(self) -> int:
        return len(self.pixels)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        picture: Any = Picture(self.pixels[int(index)])
        target: Any = int(self.targets[int(index)])
        if self.transform is not None:
            picture = self.transform(picture)
        if self.target_transform is not None:
            target = self.target_transform(target)
        return picture, target


class MNIST(_Made):
    """Grey images of 28 by 28."""


class FashionMNIST(_Made):
    """The same."""


class CIFAR10(_Made):
    """Images of 32 by 32 in three colours."""

    side, channels = 32, 3
