"""Linear and bilinear maps."""

from __future__ import annotations

import math

from .. import _plimsoll
from .._listed import listed
from .._plimsoll import Tensor


HALVES = (_plimsoll.float16, _plimsoll.bfloat16)


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None, *, out: Tensor | None = None) -> Tensor:
    """`input @ weight.T + bias`."""
    columns = weight.t()
    if bias is None:
        return _plimsoll.matmul(input, columns, out=out)
    # One operation adds the bias to the product before the one rounding, keeps nothing but the factors themselves, and is
    # one of those that autocast casts.
    try:
        dims = input.dim()
    except AttributeError:
        kind = type(input).__name__
        raise TypeError(f"linear(): argument 'input' (position 1) must be Tensor, not {kind}") from None
    if dims == 2 and columns.dim() == 2:
        return _plimsoll.addmm(bias, input, columns, out=out)
    if columns.dim() == 2 and dims > 0:
        *lead, width = input.shape
        result = _plimsoll.addmm(bias, input.reshape(math.prod(lead), width), columns).view((*lead, columns.shape[1]))
    else:
        result = input.matmul(columns) + bias
    return result if out is None else _plimsoll.add(result, 0, out=out)


@listed
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`x1 @ weight[k] @ x2` for each k, plus a bias."""
    if input1.dim() != input2.dim() or input1.shape[:-1] != input2.shape[:-1]:
        raise RuntimeError(
            f"bilinear: the inputs must have the same dimensions but for the last, and have {tuple(input1.shape)} and "
            f"{tuple(input2.shape)}"
        )
    if input1.dtype in HALVES:
        wide = bilinear(input1.float(), input2.float(), weight.float(), None if bias is None else bias.float())
        return wide.to(input1.dtype)
    outputs, width1, width2 = weight.shape
    if input1.shape[-1] != width1 or input2.shape[-1] != width2:
        raise RuntimeError(
            f"bilinear: a weight of shape {tuple(weight.shape)} needs inputs of {width1} and {width2} elements, and they "
            f"have {input1.shape[-1]} and {input2.shape[-1]}"
        )
    lead = list(input1.shape[:-1])
    rows = 1
    for size in lead:
        rows *= size
    left = input1.reshape(rows, width1).matmul(weight.permute(1, 0, 2).reshape(width1, outputs * width2))
    result = (left.reshape(rows, outputs, width2) * input2.reshape(rows, 1, width2)).sum(-1, dtype=weight.dtype).reshape([*lead, outputs])
    return result if bias is None else result + bias
