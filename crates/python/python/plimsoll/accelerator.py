"""The device that computes fastest, whatever it is: a GPU here, if there is one."""

from __future__ import annotations

from typing import Any

from . import _plimsoll, cuda
from .cuda import current_stream as current_stream
from .cuda import device_count as device_count
from .cuda import empty_cache as empty_cache
from .cuda import is_available as is_available
from .cuda import max_memory_allocated as max_memory_allocated
from .cuda import max_memory_reserved as max_memory_reserved
from .cuda import memory_allocated as memory_allocated
from .cuda import memory_reserved as memory_reserved
from .cuda import memory_stats as memory_stats
from .cuda import reset_accumulated_memory_stats as reset_accumulated_memory_stats
from .cuda import reset_peak_memory_stats as reset_peak_memory_stats
from .cuda import set_device as set_device_index
from .cuda import set_stream as set_stream
from .cuda import synchronize as synchronize


def current_accelerator(check_available: bool = False) -> _plimsoll.device | None:
    """What it is; None where there is no GPU."""
    return _plimsoll.device("cuda") if is_available() else None


def current_device_index() -> int:
    """The number of the current one."""
    return cuda.current_device()


def get_memory_info(device_index: Any = None) -> tuple[int, int]:
    """Free and total bytes."""
    return cuda.mem_get_info(device_index)
