"""Devices as the arguments of this package name them: numbers of GPUs, names, or device objects."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ... import _plimsoll


def chosen(device: Any) -> _plimsoll.device:
    """The device that a number of a GPU, a name or a device object stands for."""
    if isinstance(device, _plimsoll.device):
        return device
    if isinstance(device, bool) or not isinstance(device, (int, str)):
        raise TypeError(f"{device!r} is not a device: use the number of a GPU, a name such as 'cuda:0', or a plimsoll.device")
    return _plimsoll.device(f"cuda:{device}" if isinstance(device, int) else device)


def all_chosen(devices: Iterable[Any]) -> list[_plimsoll.device]:
    """All of them, in their order."""
    return [chosen(device) for device in devices]


def names_gpu(device: Any) -> bool:
    """Whether it is the number of a GPU, or its name."""
    return (isinstance(device, int) and not isinstance(device, bool)) or (isinstance(device, str) and device.startswith("cuda"))


def gpus() -> list[_plimsoll.device]:
    """Every GPU of this machine, or the stand-in that answers as one; none is no error."""
    return [_plimsoll.device(f"cuda:{number}") for number in range(_plimsoll._cuda_count())]
