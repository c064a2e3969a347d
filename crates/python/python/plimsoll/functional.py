"""Functions whose arguments have more forms than a signature can say."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

from . import _plimsoll
from ._listed import listed
from ._plimsoll import Tensor

__all__ = [
    "as_tensor",
    "chain_matmul",
    "conv_tbc",
    "einsum",
    "histogramdd",
    "lu",
    "segment_reduce",
    "tensordot",
    "unravel_index",
]


class _Histogramdd(NamedTuple):
    """What `histogramdd` gives."""

    hist: Tensor
    bin_edges: tuple[Tensor, ...]


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


def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """Data as a tensor: a tensor or an array shares its memory if neither dtype nor device changes, all else is copied."""
    if not isinstance(data, Tensor):
        if type(data).__name__ != "ndarray" or type(data).__module__ != "numpy":
            return _plimsoll.tensor(data, dtype=dtype, device=device)
        data = _plimsoll.from_numpy(data)
    made: Tensor = data
    if dtype is None and device is None:
        return made
    return made.to(dtype=made.dtype if dtype is None else dtype, device=made.device if device is None else device)


def lu(
    A: Tensor,  # noqa: N803
    pivot: bool = True,
    get_infos: bool = False,
    out: Sequence[Tensor] | None = None,
) -> tuple[Tensor, ...]:
    """Both factors of each matrix in one, the pivots and, with `get_infos`, what was wrong.

    The older form of `linalg.lu_factor`."""
    results: tuple[Tensor, ...] = _plimsoll.linalg_lu_factor_ex(A, pivot=pivot, check_errors=not get_infos)
    results = results if get_infos else tuple(results)[:2]
    if out is None:
        return results
    if not isinstance(out, (tuple, list)) or len(out) != len(results):
        raise TypeError(f"lu(): out= is {len(results)} tensors")
    for target, result in zip(out, results, strict=True):
        target.resize_(result.shape).copy_(result)
    return tuple(out)


Tensor.lu = lu  # type: ignore[method-assign, assignment]


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


def chain_matmul(*matrices: Tensor, out: Tensor | None = None) -> Tensor:
    """The product of two-dimensional tensors, in the order that multiplies least: the older form of `linalg.multi_dot`."""
    if not matrices:
        raise RuntimeError("chain_matmul(): Expected one or more matrices")
    if len(matrices) == 1:
        return matrices[0] if out is None else out.resize_(matrices[0].shape).copy_(matrices[0])
    return _plimsoll.linalg_multi_dot(list(matrices), out=out)


@listed
def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """A convolution along the first dimension of [steps, batch, channels], with weights of [width, channels, results]."""
    if input.dim() != 3 or weight.dim() != 3 or bias.dim() != 1:
        raise RuntimeError(
            f"conv_tbc: the input and the weight have 3 dimensions and the bias 1, and they have the shapes "
            f"{tuple(input.shape)}, {tuple(weight.shape)} and {tuple(bias.shape)}"
        )
    return _plimsoll.conv1d(input.permute(1, 2, 0), weight.permute(2, 1, 0), bias, padding=pad).permute(2, 0, 1).contiguous()


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
    return _plimsoll.tensordot(a, b, dims_a, dims_b, out=out)  # type: ignore[arg-type, misc]


def unravel_index(indices: Tensor, shape: int | Sequence[int]) -> tuple[Tensor, ...]:
    """Places in a tensor of `shape`, counted row by row, as an index into each dimension."""
    if indices.dtype.is_floating_point or indices.dtype == _plimsoll.bool:
        raise TypeError(f"unravel_index(): expected 'indices' to be integer dtype, but got {indices.dtype}")
    if not isinstance(shape, (int, Sequence)):
        raise TypeError(f"unravel_index(): expected 'shape' to be int or sequence of ints, but got {type(shape)}")
    sizes = [shape] if isinstance(shape, int) else list(shape)
    if not all(isinstance(size, int) for size in sizes):
        wrong = next(type(size) for size in sizes if not isinstance(size, int))
        raise TypeError(f"unravel_index(): expected 'shape' sequence to only contain ints, but got {wrong}")
    if any(size < 0 for size in sizes):
        raise ValueError(f"unravel_index(): 'shape' cannot have negative values, but got {tuple(sizes)}")
    if 0 in sizes and indices.numel() > 0:
        raise ValueError(f"unravel_index(): a tensor of shape {sizes} has no places")
    results: list[Tensor] = []
    rest = indices.long()
    for size in reversed(sizes):
        results.append(rest % size)
        rest = rest.div(size, rounding_mode="floor")
    return tuple(reversed(results))


def histogramdd(
    input: Tensor,
    bins: int | Sequence[int] | Sequence[Tensor],
    *,
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> _Histogramdd:
    """How many points, whose coordinates are the last dimension, fall into each of a grid of bins; and the bins' edges."""
    if input.dim() < 2:
        raise RuntimeError(f"histogramdd(): points are rows of a matrix, and this has shape {list(input.shape)}")
    width = input.shape[-1]
    points = input.detach().reshape(-1, width)
    each: Sequence[Any] = [bins] * width if isinstance(bins, int) else bins
    if len(each) != width:
        raise RuntimeError(f"histogramdd(): points of {width} coordinates need as many bins, not {len(each)}")
    if range is not None and len(range) != 2 * width:
        raise RuntimeError(f"histogramdd(): a range is two numbers for each of {width} coordinates, not {len(range)}")
    if weight is not None and tuple(weight.shape) != tuple(input.shape[:-1]):
        raise RuntimeError(f"histogramdd(): a weight is needed for each point, not shape {list(weight.shape)}")
    edges = []
    inside = _plimsoll.ones(points.shape[0], dtype=_plimsoll.bool, device=input.device)
    place = _plimsoll.zeros(points.shape[0], dtype=_plimsoll.int64, device=input.device)
    for at, one in enumerate(each):
        line = points.select(1, at).contiguous()
        if isinstance(one, Tensor):
            edge = one
        else:
            ends = None if range is None else list(range[2 * at : 2 * at + 2])
            edge = _plimsoll.histogram(line, one, range=ends)[1]
        count = edge.numel() - 1
        # The last edge belongs to the last bin.
        bin = (_plimsoll.bucketize(line, edge, right=True) - 1).clamp(0, max(count - 1, 0))
        inside = inside & (line >= edge[0]) & (line <= edge[-1])
        place = place * count + bin
        edges.append(edge)
    sizes = [edge.numel() - 1 for edge in edges]
    weights = inside.to(input.dtype) if weight is None else weight.reshape(-1) * inside.to(input.dtype)
    total = prod(sizes)
    counts = _plimsoll.bincount(place, weights, total)[:total].to(input.dtype).reshape(sizes)
    if density:
        counts = counts / counts.sum()
        for at, edge in enumerate(edges):
            counts = counts / edge.diff().reshape([-1 if dim == at else 1 for dim, _ in enumerate(edges)])
    return _Histogramdd(counts, tuple(edges))


# What a reduction of segments starts with, and its name among reductions of scattered elements.
_SEGMENTS = {"sum": (0.0, "sum"), "mean": (0.0, "sum"), "prod": (1.0, "prod")} | {
    "max": (float("-inf"), "amax"),
    "min": (float("inf"), "amin"),
}


def segment_reduce(
    data: Tensor,
    reduce: str,
    *,
    lengths: Tensor | None = None,
    indices: Tensor | None = None,
    offsets: Tensor | None = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: float | None = None,
) -> Tensor:
    """Reductions of segments along `axis`, which lie one behind the other and whose lengths or ends are given."""
    if reduce not in _SEGMENTS:
        raise RuntimeError(f"segment_reduce(): a reduction is one of {', '.join(_SEGMENTS)}, not {reduce!r}")
    if indices is not None:
        raise RuntimeError("segment_reduce(): indices are not taken; give lengths or offsets")
    if offsets is not None:
        lengths = offsets.diff(dim=-1)
    if lengths is None:
        raise RuntimeError("segment_reduce(): lengths or offsets are needed")
    axis %= max(data.dim(), 1)
    before, length, behind = data.shape[:axis], data.shape[axis], data.shape[axis + 1 :]
    if tuple(lengths.shape[:-1]) != tuple(before):
        raise RuntimeError(f"segment_reduce(): lengths of shape {list(lengths.shape)} do not fit data before axis {axis}")
    rows, count, width = prod(before), lengths.shape[-1], prod(behind)
    ends = lengths.reshape(rows, count).cumsum(1).contiguous()
    if not unsafe and (bool((lengths < 0).any()) or bool((ends[:, -1:] != length).any())):
        raise RuntimeError(f"segment_reduce(): lengths must not be negative and must add up to {length}")
    start, how = _SEGMENTS[reduce]
    # What lies behind all segments goes to one more.
    first = start if initial is None else initial
    base = _plimsoll.full([rows, count + 1, width], first, dtype=data.dtype, device=data.device)
    places = _plimsoll.arange(length, device=data.device).expand(rows, length).contiguous()
    segment = _plimsoll.searchsorted(ends, places, right=True).unsqueeze(-1).expand(rows, length, width)
    result = base.scatter_reduce(1, segment, data.reshape(rows, length, width), how).narrow(1, 0, count)
    if reduce == "mean":
        counts = lengths.reshape(rows, count, 1)
        empty = float("nan") if initial is None else initial
        result = _plimsoll.where(counts > 0, result / counts.clamp(min=1).to(data.dtype), empty)
    return result.reshape([*before, count, *behind])
