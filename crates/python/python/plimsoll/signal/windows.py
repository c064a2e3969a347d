"""Windows, by which a part of a signal fades in and out: `torch.signal.windows`, in terms of the other operations.

A window is symmetric, or periodic if `sym` is false: then it is the symmetric one of one more point without its last.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from .. import _plimsoll as pl
from .._plimsoll import Tensor

__all__ = [
    "bartlett",
    "blackman",
    "cosine",
    "exponential",
    "gaussian",
    "general_cosine",
    "general_hamming",
    "hamming",
    "hann",
    "kaiser",
    "nuttall",
]


class _Made:
    """Of which dtype a window is made, and where; the length and these are checked first."""

    def __init__(self, name: str, M: int, dtype: Any, layout: Any, device: Any, requires_grad: bool) -> None:
        self.dtype = pl.float32 if dtype is None else dtype
        self.device, self.requires_grad = device, requires_grad
        if M < 0:
            raise ValueError(f"{name}: a window has 0 points or more, not {M}")
        if layout is not pl.strided:
            raise ValueError(f"{name}: a window is strided, not {layout}")
        if self.dtype not in (pl.float32, pl.float64):
            raise ValueError(f"{name}: a window is float32 or float64, not {self.dtype}")

    def ones(self, M: int) -> Tensor:
        return pl.ones(M, dtype=self.dtype, device=self.device, requires_grad=self.requires_grad)

    def points(self, first: float, step: float, M: int) -> Tensor:
        last = first + (M - 1) * step
        return pl.linspace(first, last, M, dtype=self.dtype, device=self.device, requires_grad=self.requires_grad)


def exponential(
    M: int,
    *,
    center: float | None = None,
    tau: float = 1.0,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = pl.strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """A window that falls off exponentially from its centre, to 1/e at `tau` points from there."""
    made = _Made("exponential", M, dtype, layout, device, requires_grad)
    if tau <= 0:
        raise ValueError(f"exponential: tau must be positive, and is {tau}")
    if sym and center is not None:
        raise ValueError("exponential: a symmetric window has its centre in the middle; leave center away")
    if M == 0:
        return made.ones(0)
    middle = (M if not sym and M > 1 else M - 1) / 2.0 if center is None else center
    return pl.exp(-pl.abs(made.points(-middle / tau, 1.0 / tau, M)))


def cosine(
    M: int,
    *,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = pl.strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """A window of half a period of a sine."""
    made = _Made("cosine", M, dtype, layout, device, requires_grad)
    if M == 0:
        return made.ones(0)
    step = math.pi / (M + 1 if not sym and M > 1 else M)
    return pl.sin(made.points(0.5 * step, step, M))


def gaussian(
    M: int,
    *,
    std: float = 1.0,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = pl.strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """A window in the form of a normal distribution, `std` points wide."""
    made = _Made("gaussian", M, dtype, layout, device, requires_grad)
    if std <= 0:
        raise ValueError(f"gaussian: std must be positive, and is {std}")
    if M == 0:
        return made.ones(0)
    step = 1.0 / (std * math.sqrt(2.0))
    apart = made.points(-(M if not sym and M > 1 else M - 1) / 2.0 * step, step, M)
    return pl.exp(-(apart * apart))


def kaiser(
    M: int,
    *,
    beta: float = 12.0,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = pl.strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Kaiser's window, the steeper the larger `beta` is."""
    made = _Made("kaiser", M, dtype, layout, device, requires_grad)
    if beta < 0:
        raise ValueError(f"kaiser: beta must not be negative, and is {beta}")
    if M < 2:
        return made.ones(M)
    # In the window's dtype, so that no rounding leads past the ends.
    height = pl.full([], beta, dtype=made.dtype, device=device)
    beta = height.item()
    step = 2.0 * beta / (M if not sym else M - 1)
    points = made.points(-beta, step, M).clamp(-beta, beta)
    return pl.i0(pl.sqrt(height * height - points * points)) / pl.i0(height)


def general_cosine(
    M: int,
    *,
    a: Iterable[float],
    sym: bool = True,
    dtype: Any = None,
    layout: Any = pl.strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """A sum of cosines, whose weights are `a` with signs that alternate."""
    made = _Made("general_cosine", M, dtype, layout, device, requires_grad)
    if M < 2:
        return made.ones(M)
    if not isinstance(a, Iterable):
        raise TypeError("general_cosine: the weights a are a list of numbers")
    weights = list(a)
    if not weights:
        raise ValueError("general_cosine: at least one weight is needed")
    points = made.points(0.0, 2.0 * math.pi / (M if not sym else M - 1), M)
    signed = [-weight if order % 2 else weight for order, weight in enumerate(weights)]
    orders = pl.arange(len(weights), dtype=made.dtype, device=device).unsqueeze(-1)
    heights = pl.tensor(signed, dtype=made.dtype, device=device).unsqueeze(-1)
    return (heights * pl.cos(orders * points)).sum(0)


def general_hamming(
    M: int,
    *,
    alpha: float = 0.54,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = pl.strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """A raised cosine from `2 * alpha - 1` to 1."""
    return general_cosine(
        M, a=[alpha, 1.0 - alpha], sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad
    )


def hamming(
    M: int,
    *,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = pl.strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Hamming's window: a raised cosine from 0.08 to 1."""
    return general_hamming(M, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)


def hann(
    M: int,
    *,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = pl.strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Hann's window: a raised cosine from 0 to 1."""
    return general_hamming(
        M, alpha=0.5, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad
    )


def blackman(
    M: int,
    *,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = pl.strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Blackman's window: a sum of three cosines."""
    weights = [0.42, 0.5, 0.08]
    return general_cosine(
        M, a=weights, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad
    )


def nuttall(
    M: int,
    *,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = pl.strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Nuttall's window: a sum of four cosines."""
    weights = [0.3635819, 0.4891775, 0.1365995, 0.0106411]
    return general_cosine(
        M, a=weights, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad
    )


def bartlett(
    M: int,
    *,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = pl.strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """A triangle from 0 to 1 and back."""
    made = _Made("bartlett", M, dtype, layout, device, requires_grad)
    if M < 2:
        return made.ones(M)
    return 1 - pl.abs(made.points(-1.0, 2.0 / (M if not sym else M - 1), M))
