"""Modules applied to inputs, each on its device."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ..._plimsoll import Tensor
from ..modules.module import Module
from ._devices import chosen


def parallel_apply(
    modules: Sequence[Module],
    inputs: Sequence[Any],
    kwargs_tup: Sequence[dict[str, Any]] | None = None,
    devices: Sequence[Any] | None = None,
) -> list[Any]:
    """The result of each module for its input, which may be a tuple of arguments.

    Devices work at the same time though one thread asks them: a call only queues work. PyTorch starts a thread a module,
    and has to take gradient mode and autocast along; here everything that holds for the caller holds, and reports name
    the caller's line. What waits inside `forward`, such as `item()`, makes the next device wait too."""
    if len(modules) != len(inputs):
        raise AssertionError(
            f"The number of modules {len(modules)} is not equal to the number of inputs {len(inputs)}"
        )
    named = [{} for _ in modules] if kwargs_tup is None else kwargs_tup
    if len(named) != len(modules):
        raise AssertionError(
            f"The number of modules {len(modules)} is not equal to the number of keyword arguments {len(named)}"
        )
    if devices is not None and len(devices) != len(modules):
        raise AssertionError(
            f"The number of modules {len(modules)} is not equal to the number of devices {len(devices)}"
        )
    results = []
    for at, (module, input, kwargs) in enumerate(zip(modules, inputs, named, strict=True)):
        device = _device_of(at, input, kwargs) if devices is None else chosen(devices[at])
        arguments = input if isinstance(input, (list, tuple)) else (input,)
        try:
            results.append(module(*arguments, **kwargs))
        except Exception as error:
            raise _placed(error, at, device) from error
    return results


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from _tensors(one)
    elif isinstance(value, dict):
        yield from _tensors(list(value.values()))


def _device_of(at: int, input: Any, kwargs: dict[str, Any]) -> Any:
    for tensor in _tensors((input, kwargs)):
        return tensor.device
    raise RuntimeError(
        f"in replica {at}, no device was provided and no tensor input was found; device cannot be resolved"
    )


def _placed(error: Exception, at: int, device: Any) -> Exception:
    """The same error with the place where it happened. One that cannot be made of a text becomes a RuntimeError."""
    text = f"Caught {type(error).__name__} in replica {at} on device {device}.\n{error}"
    try:
        made = type(error)(text)
    except TypeError:
        return RuntimeError(text)
    made.__dict__.update(error.__dict__)
    return made
