"""Channels in another order: PyTorch's file of these names; they are in `shuffling.py`."""

from .shuffling import ChannelShuffle as ChannelShuffle
