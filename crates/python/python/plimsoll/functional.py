"""Functions whose arguments have more forms than a signature can say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import _plimsoll
from ._plimsoll import Tensor

__all__ = ["einsum", "tensordot"]

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def _subscripts(labels: Sequence[Any]) -> str:
    """A list of numbers and `...` as letters."""
    text = ""
    for label in labels:
        if label is Ellipsis:
            text += "..."
        elif isinstance(label, int) and 0 <= label < len(_LETTERS):
            text += _LETTERS[label]
        else:
            raise ValueError(f"einsum(): a label must be ... or a whole number from 0 to 51, not {label!r}")
    return text


def einsum(*args: Any) -> Tensor:
    """The product of tensors whose dimensions are labelled, summed over the labels that the result lacks.

    `einsum("ij,jk->ik", a, b)`, or `einsum(a, [0, 1], b, [1, 2], [0, 2])`.
    """
    if len(args) < 2:
        raise ValueError("einsum(): takes an equation and operands, or operands each followed by its labels")
    if isinstance(args[0], Tensor):
        operands = list(args[0 : len(args) // 2 * 2 : 2])
        equation = ",".join(_subscripts(labels) for labels in args[1::2])
        if len(args) % 2 == 1:
            equation += "->" + _subscripts(args[-1])
        return _plimsoll.einsum(equation, operands)
    equation, operands = args[0], list(args[1:])
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = list(operands[0])
    return _plimsoll.einsum(equation, operands)


def tensordot(
    a: Tensor, b: Tensor, dims: int | Tensor | Sequence[Sequence[int]] = 2, out: Tensor | None = None
) -> Tensor:
    """The product over several dimensions: the last `dims` of `a` with the first of `b`, or those that two lists name."""
    if isinstance(dims, Tensor):
        dims = dims.tolist() if dims.numel() > 1 else int(dims.item())
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(a.dim(), b.dim()):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        dims_a, dims_b = list(range(-dims, 0)), list(range(dims))
    else:
        first, second = dims
        dims_a = [first] if isinstance(first, int) else list(first)
        dims_b = [second] if isinstance(second, int) else list(second)
    return _plimsoll.tensordot(a, b, dims_a, dims_b, out=out)
