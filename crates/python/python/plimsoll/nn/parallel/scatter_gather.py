"""The batch in parts, one a device, and the results in one piece again: tensors inside of tuples, lists and
dictionaries too, and gradients the way back."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from ... import _plimsoll
from ..._plimsoll import Tensor
from ...autograd.function import Function
from ._devices import all_chosen, chosen


def _is_namedtuple(value: Any) -> bool:
    return isinstance(value, tuple) and hasattr(value, "_fields") and hasattr(value, "_asdict")


def scatter(inputs: Any, target_gpus: Sequence[Any], dim: int = 0) -> Any:
    """For each device its part: tensors in equal pieces along `dim`, anything else as it is. A batch with fewer rows than
    there are devices has fewer parts. The piece that is on its device already is a view, and no bytes."""
    devices = all_chosen(target_gpus)
    if not devices:
        raise ValueError("scatter: there are no devices to scatter to; name at least one")
    return _scattered(inputs, devices, dim)


def _scattered(value: Any, devices: list[_plimsoll.device], dim: int) -> Any:
    if isinstance(value, Tensor):
        if value.dim() == 0:
            raise RuntimeError("scatter: a tensor without dimensions has no rows to give to devices; pass it as a number")
        return tuple(part.to(device) for part, device in zip(value.chunk(len(devices), dim), devices))

    def parts(values: Any) -> Any:
        # As many as the shortest has.
        return zip(*(_scattered(one, devices, dim) for one in values))

    if _is_namedtuple(value):
        return [type(value)(*part) for part in parts(value)]
    if isinstance(value, tuple) and value:
        return list(parts(value))
    if isinstance(value, list) and value:
        return [list(part) for part in parts(value)]
    if isinstance(value, dict) and value:
        return [type(value)(part) for part in parts(value.items())]
    return [value for _ in devices]


def scatter_kwargs(
    inputs: tuple[Any, ...], kwargs: dict[str, Any] | None, target_gpus: Sequence[Any], dim: int = 0
) -> tuple[tuple[Any, ...], tuple[dict[str, Any], ...]]:
    """`scatter` of arguments by place and by name; both get as many parts as the longer has."""
    places = list(scatter(inputs, target_gpus, dim)) if inputs else []
    names = list(scatter(kwargs, target_gpus, dim)) if kwargs else []
    places.extend(() for _ in range(len(names) - len(places)))
    names.extend({} for _ in range(len(places) - len(names)))
    return tuple(places), tuple(names)


class _Gather(Function):
    """Tensors of several devices in one, which is allocated once and written part by part."""

    @staticmethod
    def forward(ctx: Any, device: _plimsoll.device, dim: int, *parts: Tensor) -> Tensor:
        ctx.dim, ctx.places = dim, [(part.device, part.shape[dim]) for part in parts]
        sizes = list(parts[0].shape)
        sizes[dim] = sum(size for _, size in ctx.places)
        whole = _plimsoll.empty(sizes, dtype=parts[0].dtype, device=device)
        start = 0
        for part in parts:
            whole.narrow(dim, start, part.shape[dim]).copy_(part)
            start += part.shape[dim]
        return whole

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        grads, start = [], 0
        for wanted, (device, size) in zip(ctx.needs_input_grad[2:], ctx.places, strict=True):
            grads.append(grad.narrow(ctx.dim, start, size).to(device) if wanted else None)
            start += size
        return None, None, *grads


def _gathered_tensors(parts: Sequence[Tensor], device: _plimsoll.device, dim: int) -> Tensor:
    first = parts[0]
    if all(part.dim() == 0 for part in parts) and dim == 0:
        warnings.warn(
            "Was asked to gather along dimension 0, but all input tensors were scalars; will instead unsqueeze and return "
            "a vector.",
            stacklevel=2,
        )
        parts = [part.reshape(1) for part in parts]
        first = parts[0]
    dim = dim + first.dim() if dim < 0 else dim
    if not 0 <= dim < first.dim():
        raise IndexError(f"gather: tensors of {first.dim()} dimensions have no dimension {dim}")
    for at, part in enumerate(parts):
        others = [size for place, size in enumerate(part.shape) if place != dim]
        if part.dtype != first.dtype or others != [size for place, size in enumerate(first.shape) if place != dim]:
            raise RuntimeError(
                f"gather: result {at} is {tuple(part.shape)} of {part.dtype} on {part.device} and result 0 is "
                f"{tuple(first.shape)} of {first.dtype} on {first.device}; only dimension {dim} may differ"
            )
    gathered: Tensor = _Gather.apply(device, dim, *parts)
    return gathered


def gather(outputs: Sequence[Any], target_device: Any, dim: int = 0) -> Any:
    """The devices' results as one on `target_device`: tensors joined along `dim`, and tuples, lists and dictionaries
    entry by entry."""
    if not outputs:
        raise ValueError("gather: there are no results to gather")
    return _gathered(outputs, chosen(target_device), dim)


def _gathered(values: Sequence[Any], device: _plimsoll.device, dim: int) -> Any:
    first = values[0]
    if isinstance(first, Tensor):
        return _gathered_tensors(values, device, dim)
    if first is None:
        return None
    if isinstance(first, dict):
        if not all(len(first) == len(one) for one in values):
            raise ValueError("All dicts must have the same number of keys")
        return type(first)((key, _gathered([one[key] for one in values], device, dim)) for key in first)
    entries = (_gathered(entry, device, dim) for entry in zip(*values, strict=True))
    return type(first)._make(entries) if _is_namedtuple(first) else type(first)(entries)
