"""How the functions of `cuda` name a device: by its number, a text, an object, or not at all for the current one."""

from __future__ import annotations

from typing import Any

from .. import _plimsoll


def place(device: Any = None) -> _plimsoll.device:
    """The device that is meant; it must be one that answers as `cuda`."""
    meant = _plimsoll.device("cuda") if device is None else _plimsoll.device(device)
    if meant.type != "cuda":
        raise ValueError(f"Expected a cuda device, but got: {meant}")
    return meant


def device_index(device: Any) -> int:
    """Its number; that of the current one where it is named without."""
    if isinstance(device, int):
        return device
    index = place(device).index
    return _plimsoll._cuda_device() if index is None else index


def is_there() -> bool:
    return _plimsoll._cuda_count() > 0
