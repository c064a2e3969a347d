"""Channels as pixels, and back: PyTorch's file of these names; they are in `shuffling.py`."""

from .shuffling import PixelShuffle as PixelShuffle
from .shuffling import PixelUnshuffle as PixelUnshuffle
