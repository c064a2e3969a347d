"""Windows by PyTorch's older names: periodic unless told otherwise. The general ones are in `signal.windows`."""

from __future__ import annotations

import math
from typing import Any

from . import _plimsoll
from ._plimsoll import Tensor


def _positions(op: str, window_length: int, periodic: bool, options: dict[str, Any]) -> tuple[Tensor, int]:
    """The positions 0, 1, … of the window, and by what they are divided. A periodic window is a symmetric one that is
    longer by one, without its end."""
    if window_length < 0:
        raise RuntimeError(f"{op}: a window has 0 elements or more, not {window_length}")
    dtype = options.get("dtype") or _plimsoll.get_default_dtype()
    if not dtype.is_floating_point:
        raise RuntimeError(f"{op}: a window holds fractions; {dtype} does not")
    steps = window_length if periodic else window_length - 1
    return _plimsoll.arange(window_length, **{**options, "dtype": dtype}), steps


def _cosines(op: str, window_length: int, periodic: bool, parts: tuple[float, ...], options: dict[str, Any]) -> Tensor:
    """A sum of cosines with alternating signs."""
    requires_grad = options.pop("requires_grad", False)
    positions, steps = _positions(op, window_length, periodic, options)
    if window_length == 1:
        return _plimsoll.ones_like(positions).requires_grad_(requires_grad)
    window = _plimsoll.zeros_like(positions)
    for order, part in enumerate(parts):
        window += (-1) ** order * part * (positions * (2 * math.pi * order / max(steps, 1))).cos()
    return window.requires_grad_(requires_grad)


def hann_window(window_length: int, periodic: bool = True, **options: Any) -> Tensor:
    """Hann's window.

    >>> import plimsoll as pm
    >>> pm.hann_window(4)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    return _cosines("hann_window", window_length, periodic, (0.5, 0.5), options)


def hamming_window(
    window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, **options: Any
) -> Tensor:
    """Hamming's window."""
    return _cosines("hamming_window", window_length, periodic, (alpha, beta), options)


def blackman_window(window_length: int, periodic: bool = True, **options: Any) -> Tensor:
    """Blackman's window."""
    return _cosines("blackman_window", window_length, periodic, (0.42, 0.5, 0.08), options)


def bartlett_window(window_length: int, periodic: bool = True, **options: Any) -> Tensor:
    """Bartlett's window, a triangle."""
    requires_grad = options.pop("requires_grad", False)
    positions, steps = _positions("bartlett_window", window_length, periodic, options)
    if window_length == 1:
        return _plimsoll.ones_like(positions).requires_grad_(requires_grad)
    return (1 - (positions * (2 / max(steps, 1)) - 1).abs()).requires_grad_(requires_grad)


def kaiser_window(window_length: int, periodic: bool = True, beta: float = 12.0, **options: Any) -> Tensor:
    """Kaiser's window."""
    requires_grad = options.pop("requires_grad", False)
    positions, steps = _positions("kaiser_window", window_length, periodic, options)
    if window_length == 1:
        return _plimsoll.ones_like(positions).requires_grad_(requires_grad)
    ratio = positions * (2 / max(steps, 1)) - 1
    window = _plimsoll.i0(beta * (1 - ratio * ratio).clamp_min(0).sqrt()) / _plimsoll.i0(
        _plimsoll.tensor(beta, dtype=positions.dtype, device=positions.device)
    )
    return window.requires_grad_(requires_grad)
