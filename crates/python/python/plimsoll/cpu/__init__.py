"""The host as a device, under PyTorch's names: there is one, and work on it has run when a call returns. Its memory
functions are those of the package; here they go without a device."""

from __future__ import annotations

import contextlib
from typing import Any, Iterator

from .. import _plimsoll
from .._shown import ShownText
from . import amp as amp

__all__ = [
    "amp",
    "current_device",
    "current_stream",
    "device_count",
    "empty_cache",
    "is_available",
    "is_initialized",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "memory_summary",
    "reset_peak_memory_stats",
    "set_device",
    "stream",
    "synchronize",
]

_HOST = _plimsoll.device("cpu")


def is_available() -> bool:
    """Whether tensors can be made there: always."""
    return True


def is_initialized() -> bool:
    """Whether it is open: always."""
    return True


def device_count() -> int:
    """How many there are: one."""
    return 1


def current_device() -> str:
    """Its name."""
    return "cpu"


def set_device(device: Any) -> None:
    """There is one, so nothing changes."""


def synchronize(device: Any = None) -> None:
    """Waits for work that runs beside the program: copies from devices."""
    _plimsoll.synchronize(_HOST)


def current_stream(device: Any = None) -> _plimsoll.Stream:
    """The one stream of the host."""
    return _plimsoll._current_stream(_HOST)


@contextlib.contextmanager
def stream(stream: Any) -> Iterator[None]:
    """There is one stream, so nothing changes inside."""
    yield


def memory_allocated() -> int:
    """Bytes in tensors on the host."""
    return _plimsoll.memory_allocated(_HOST)


def max_memory_allocated() -> int:
    """The highest `memory_allocated` since the start or the last reset."""
    return _plimsoll.max_memory_allocated(_HOST)


def memory_reserved() -> int:
    """Bytes held from the system, in use or cached."""
    return _plimsoll.memory_reserved(_HOST)


def max_memory_reserved() -> int:
    """The highest `memory_reserved` since the start or the last reset."""
    return _plimsoll.max_memory_reserved(_HOST)


def memory_stats() -> dict[str, Any]:
    """All statistics, under PyTorch's keys."""
    return _plimsoll.memory_stats(_HOST)


def memory_summary(abbreviated: bool = False) -> str:
    """PyTorch's table of the statistics."""
    return ShownText(_plimsoll.memory_summary(_HOST, abbreviated))


def reset_peak_memory_stats() -> None:
    """Makes the present figures the new peaks."""
    _plimsoll.reset_peak_memory_stats(_HOST)


def empty_cache(keep_bytes: int = 0) -> None:
    """Gives cached memory back to the system, but for `keep_bytes`."""
    _plimsoll.empty_cache(_HOST, keep_bytes=keep_bytes)
