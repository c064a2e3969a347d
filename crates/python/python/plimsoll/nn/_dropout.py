"""Dropout of elements and of whole channels, plain and for self-normalizing networks."""

from __future__ import annotations

import math
import warnings

from .. import _plimsoll
from .._modes import no_grad
from .._plimsoll import Tensor

# Minus the product of SELU's scale and alpha: what its large negative inputs become.
SATURATED = 1.7580993408473766


def _check(p: float) -> None:
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """In training, zeros elements with probability `p` and scales the others by `1 / (1 - p)`."""
    _check(p)
    return input.dropout_(p, training) if inplace else input.dropout(p, training)


def _noise(input: Tensor, p: float, channels: bool) -> Tensor:
    """1 / (1 - p) where something is kept, else 0: an element each, or one a channel."""
    if channels and input.dim() < 2:
        raise RuntimeError(f"dropout of channels needs 2 or more dimensions, and the input has {input.dim()}")
    sizes = list(input.shape)
    if channels:
        sizes[2:] = [1] * (len(sizes) - 2)
    with no_grad():
        return _plimsoll.ones(sizes, dtype=input.dtype, device=input.device).dropout(p, True)


def _warn_of_rank(name: str, input: Tensor, wanted: str) -> None:
    warnings.warn(
        f"{name}: Received a {input.dim()}-D input to {name}, which is deprecated and will result in an error in a future "
        f"release. To keep this behavior without the warning, give it {wanted}.",
        stacklevel=3,
    )


def _channels(input: Tensor, p: float, training: bool, inplace: bool) -> Tensor:
    _check(p)
    if not training or p == 0.0 or input.numel() == 0:
        return input
    noise = _noise(input, p, channels=True)
    return input.mul_(noise) if inplace else input * noise


def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """`dropout` of whole channels of [batch, channels, length] or [channels, length]."""
    _check(p)
    if input.dim() not in (2, 3):
        raise RuntimeError(f"dropout1d: Expected 2D or 3D input, but received a {input.dim()}D input")
    if input.dim() == 3:
        return _channels(input, p, training, inplace)
    result = _channels(input.unsqueeze(0), p, training, inplace)
    return input if inplace else result.squeeze(0)


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """`dropout` of whole channels of [batch, channels, height, width]."""
    _check(p)
    if input.dim() not in (3, 4):
        _warn_of_rank("dropout2d", input, "3-D or 4-D")
    if input.dim() == 3:
        warnings.warn(
            "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout behavior is desired: its "
            "sizes are taken as [batch, channels, length]. Use dropout1d for that.",
            stacklevel=2,
        )
    return _channels(input, p, training, inplace)


def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """`dropout` of whole channels of [batch, channels, depth, height, width], with or without the batch."""
    _check(p)
    if input.dim() not in (4, 5):
        _warn_of_rank("dropout3d", input, "4-D or 5-D")
    if input.dim() != 4:
        return _channels(input, p, training, inplace)
    result = _channels(input.unsqueeze(0), p, training, inplace)
    return input if inplace else result.squeeze(0)


def _alpha(input: Tensor, p: float, training: bool, inplace: bool, channels: bool) -> Tensor:
    _check(p)
    if not training or p == 0.0 or input.numel() == 0:
        return input
    if p == 1.0:
        zeros = input.detach() * 0
        return input.mul_(zeros) if inplace else input * zeros
    with no_grad():
        kept = (_noise(input, p, channels) != 0).to(input.dtype)
        scale = 1.0 / math.sqrt((SATURATED * SATURATED * p + 1.0) * (1.0 - p))
        shift = (kept - 1.0) * (SATURATED * scale) + SATURATED * scale * p
        kept = kept * scale
    return input.mul_(kept).add_(shift) if inplace else input * kept + shift


def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Dropout to SELU's negative saturation, which keeps mean and variance."""
    return _alpha(input, p, training, inplace, channels=False)


def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """`alpha_dropout` of whole channels."""
    return _alpha(input, p, training, inplace, channels=True)
