"""Whether a model and what it is to be called with are on one device, checked before the first step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from ... import _plimsoll
from ..._plimsoll import Tensor
from ..modules.module import Module


def check_device_consistency(model: Module, *tensors: Any) -> _plimsoll.device | None:
    """The one device of all parameters and buffers of `model` and of all `tensors`, which may stand in tuples, lists and
    dictionaries. Where there are several, an error that lists every tensor with its device and says what to move. None
    if there is no tensor at all.

    Call it after building a model, after loading a checkpoint and before training starts."""
    found = [*_owned(model)]
    for at, given in enumerate(tensors):
        found.extend(_given(f"argument {at}", given))
    counts = Counter(tensor.device for _, tensor in found)
    if len(counts) > 1:
        raise RuntimeError(_told(found, counts))
    return next(iter(counts), None)


def _owned(model: Module) -> Iterator[tuple[str, Tensor]]:
    for name, parameter in model.named_parameters():
        yield f"parameter {name}", parameter
    for name, buffer in model.named_buffers():
        yield f"buffer {name}", buffer


def _given(name: str, value: Any) -> Iterator[tuple[str, Tensor]]:
    if isinstance(value, Tensor):
        yield name, value
    elif isinstance(value, Mapping):
        for key, one in value.items():
            yield from _given(f"{name}[{key!r}]", one)
    elif isinstance(value, (list, tuple)):
        for at, one in enumerate(value):
            yield from _given(f"{name}[{at}]", one)
    elif value is not None and not isinstance(value, (bool, int, float, str)):
        raise TypeError(
            f"check_device_consistency: {name} is {type(value).__name__}, which has no device; give tensors, or tuples, "
            "lists and dictionaries of tensors"
        )


def _told(found: list[tuple[str, Tensor]], counts: Counter[_plimsoll.device]) -> str:
    width = max(len(name) for name, _ in found)
    (most, _), *_ = counts.most_common(1)
    lines = [f"  {name:<{width}}  {tensor.device}" for name, tensor in found]
    devices = ", ".join(f"{count} on {device}" for device, count in counts.most_common())
    return (
        f"check_device_consistency: the tensors are on {len(counts)} devices ({devices}):\n"
        + "\n".join(lines)
        + "\nMove the model with `model.to(device)`, which works in place, and tensors with `x = x.to(device)`, which does "
        f"not; most are on {most}."
    )
