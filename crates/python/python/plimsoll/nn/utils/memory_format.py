"""Weights of convolutions in another order of memory."""

from __future__ import annotations

from typing import Any, TypeVar

from ..modules.conv import Conv2d, Conv3d, ConvTranspose2d, ConvTranspose3d
from ..modules.module import Module

_Kind = TypeVar("_Kind", bound=Module)


def _converted(module: _Kind, kinds: tuple[type[Module], ...], memory_format: Any) -> _Kind:
    for one in module.modules():
        if isinstance(one, kinds):
            one.weight.data = one.weight.detach().clone(memory_format=memory_format)
    return module


def convert_conv2d_weight_memory_format(module: _Kind, memory_format: Any) -> _Kind:
    """Gives the weights of all convolutions of images below another order in memory."""
    return _converted(module, (Conv2d, ConvTranspose2d), memory_format)


def convert_conv3d_weight_memory_format(module: _Kind, memory_format: Any) -> _Kind:
    """Gives the weights of all convolutions of volumes below another order in memory."""
    return _converted(module, (Conv3d, ConvTranspose3d), memory_format)
