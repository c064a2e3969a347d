"""How losses become one number, with the arguments that PyTorch had for it once."""

from __future__ import annotations

import warnings

from .._plimsoll import Tensor


def named(size_average: bool | None, reduce: bool | None, reduction: str, stacklevel: int = 3) -> str:
    """The reduction that was asked for, by its name or by the arguments of old."""
    if size_average is None and reduce is None:
        if reduction not in ("none", "mean", "sum"):
            raise ValueError(f"{reduction} is not a valid value for reduction")
        return reduction
    asked = "none" if reduce is False else "sum" if size_average is False else "mean"
    warnings.warn(
        f"size_average and reduce are arguments of old; write reduction='{asked}' instead", stacklevel=stacklevel + 1
    )
    return asked


def reduced(loss: Tensor, reduction: str) -> Tensor:
    """The losses themselves, their mean or their sum."""
    if reduction == "none":
        return loss
    return loss.mean() if reduction == "mean" else loss.sum()


def warn_of_sizes(input: Tensor, target: Tensor) -> None:
    """A target of another size is broadcast, which is rarely meant."""
    if target.shape != input.shape:
        warnings.warn(
            f"the target has the size {tuple(target.shape)} and the input {tuple(input.shape)}: they are broadcast, which "
            "is rarely meant; give both one size",
            stacklevel=3,
        )
