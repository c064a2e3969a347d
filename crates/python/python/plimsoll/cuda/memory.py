"""PyTorch's memory functions of a GPU. The same functions for every device, the CPU included, are in the package
itself; here a device is a GPU's number or name, the current one if it is left out. Where there is no GPU figures are
0, as in PyTorch."""

from __future__ import annotations

import contextlib
import warnings
from typing import Any, Iterator

from .. import _plimsoll
from .._pools import use_mem_pool as _use_mem_pool
from .._shown import ShownText
from ._place import is_there, place

__all__ = [
    "MemPool",
    "caching_allocator_enable",
    "caching_allocator_disabled",
    "empty_cache",
    "get_allocator_backend",
    "get_per_process_memory_fraction",
    "list_gpu_processes",
    "max_memory_allocated",
    "max_memory_cached",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_cached",
    "memory_reserved",
    "memory_snapshot",
    "memory_stats",
    "memory_stats_as_nested_dict",
    "memory_summary",
    "reset_accumulated_memory_stats",
    "reset_max_memory_allocated",
    "reset_max_memory_cached",
    "reset_peak_memory_stats",
    "set_per_process_memory_fraction",
    "use_mem_pool",
]


def empty_cache(keep_bytes: int = 0) -> None:
    """Gives cached memory of the current GPU back to the driver, but for `keep_bytes`."""
    if is_there():
        _plimsoll.empty_cache(place(), keep_bytes=keep_bytes)


def memory_allocated(device: Any = None) -> int:
    """Bytes in tensors now."""
    return _plimsoll.memory_allocated(place(device)) if is_there() else 0


def max_memory_allocated(device: Any = None) -> int:
    """The highest `memory_allocated` since the start or the last reset."""
    return _plimsoll.max_memory_allocated(place(device)) if is_there() else 0


def memory_reserved(device: Any = None) -> int:
    """Bytes held from the driver, in use or cached."""
    return _plimsoll.memory_reserved(place(device)) if is_there() else 0


def max_memory_reserved(device: Any = None) -> int:
    """The highest `memory_reserved` since the start or the last reset."""
    return _plimsoll.max_memory_reserved(place(device)) if is_there() else 0


def memory_cached(device: Any = None) -> int:
    """The old name of `memory_reserved`."""
    _renamed("memory_cached", "memory_reserved")
    return memory_reserved(device)


def max_memory_cached(device: Any = None) -> int:
    """The old name of `max_memory_reserved`."""
    _renamed("max_memory_cached", "max_memory_reserved")
    return max_memory_reserved(device)


def reset_peak_memory_stats(device: Any = None) -> None:
    """Makes the present figures the new peaks."""
    _plimsoll.reset_peak_memory_stats(place(device))


def reset_accumulated_memory_stats(device: Any = None) -> None:
    """Lets the totals count from zero again."""
    _plimsoll.reset_accumulated_memory_stats(place(device))


def reset_max_memory_allocated(device: Any = None) -> None:
    """The old name of `reset_peak_memory_stats`."""
    _renamed("reset_max_memory_allocated", "reset_peak_memory_stats")
    reset_peak_memory_stats(device)


def reset_max_memory_cached(device: Any = None) -> None:
    """The old name of `reset_peak_memory_stats`."""
    _renamed("reset_max_memory_cached", "reset_peak_memory_stats")
    reset_peak_memory_stats(device)


def _renamed(old: str, new: str) -> None:
    warnings.warn(f"`torch.cuda.{old}` has been renamed to `torch.cuda.{new}`", FutureWarning, stacklevel=3)


def memory_stats(device: Any = None) -> dict[str, Any]:
    """All statistics, under PyTorch's keys."""
    return _plimsoll.memory_stats(place(device)) if is_there() else {}


def memory_stats_as_nested_dict(device: Any = None) -> dict[str, Any]:
    """The statistics as dictionaries within dictionaries."""
    nested: dict[str, Any] = {}
    for key, value in memory_stats(device).items():
        *outer, last = key.split(".")
        inner = nested
        for part in outer:
            inner = inner.setdefault(part, {})
        inner[last] = value
    return nested


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """PyTorch's table of the statistics."""
    return ShownText(_plimsoll.memory_summary(place(device), abbreviated))


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Free and total bytes of a GPU, as its driver counts them."""
    return _plimsoll._memory_info(place(device))


def memory_snapshot(mempool_id: Any = None, include_traces: bool = True) -> list[dict[str, Any]]:
    """The segments of the current GPU with their blocks."""
    if mempool_id is not None:
        raise NotImplementedError("memory_snapshot: pools are in the snapshot of the whole; leave mempool_id out")
    return list(_plimsoll.memory_snapshot(place())["segments"]) if is_there() else []


def set_per_process_memory_fraction(fraction: float, device: Any = None) -> None:
    """The share of a GPU's memory that may be reserved."""
    if not isinstance(fraction, float):
        raise TypeError("Invalid type for fraction argument, must be `float`")
    if not 0 <= fraction <= 1:
        raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: 0~1")
    _plimsoll.set_per_process_memory_fraction(fraction, place(device))


def get_per_process_memory_fraction(device: Any = None) -> float:
    """The share of a GPU's memory that may be reserved."""
    return _plimsoll.get_per_process_memory_fraction(place(device))


def get_allocator_backend() -> str:
    """PyTorch's name for an allocator of its own over the driver's."""
    return "native"


def list_gpu_processes(device: Any = None) -> str:
    """This process's memory on a GPU; others are not seen."""
    free, total = mem_get_info(device)
    used = (total - free) / (1024 * 1024)
    return f"GPU:{place(device).index or 0}\nall processes together use {used:10.3f} MB GPU memory"


def caching_allocator_enable(value: bool = True) -> None:
    """Caching is a setting of the whole run: PLIMSOLL_CONF=caching:false."""
    if not value:
        raise NotImplementedError("caching_allocator_enable: set PLIMSOLL_CONF=caching:false before the program starts")


@contextlib.contextmanager
def caching_allocator_disabled() -> Iterator[None]:
    """Caching is a setting of the whole run: PLIMSOLL_CONF=caching:false."""
    caching_allocator_enable(False)
    yield


def MemPool(allocator: Any = None, use_on_oom: bool = False, no_split: bool = False) -> _plimsoll.MemPool:
    """A pool of its own in the current GPU's memory."""
    if allocator is not None or use_on_oom or no_split:
        raise NotImplementedError("MemPool: a pool has no allocator or rules of its own here; call it without arguments")
    return _plimsoll.MemPool(place())


def use_mem_pool(pool: _plimsoll.MemPool, device: Any = None) -> Any:
    """A block whose allocations come from the pool."""
    return _use_mem_pool(pool)


def _record_memory_history(
    enabled: str | None | bool = "all",
    context: str | None = "all",
    stacks: str = "all",
    max_entries: int = 1_000_000,
    device: Any = None,
    clear_history: bool = False,
    compile_context: bool = False,
    global_record_annotations: bool = False,
    skip_actions: list[str] | None = None,
    **old: Any,
) -> None:
    """Starts recording or stops (None). Origins are always noted, so `context` and `stacks` change nothing."""
    # The old form: a switch, and the number of entries under another name.
    if isinstance(enabled, bool):
        enabled = "all" if enabled else None
    max_entries = old.pop("trace_alloc_max_entries", max_entries)
    level = enabled
    # PyTorch's default is without a bound; the ring of events has one.
    _plimsoll.record_memory_history(level, min(max_entries, 10_000_000), place(device))


def _snapshot(device: Any = None, augment_with_fx_traces: bool = False) -> dict[str, Any]:
    """The snapshot of a GPU as dictionaries and lists."""
    return _plimsoll.memory_snapshot(place(device))


def _dump_snapshot(filename: str = "dump_snapshot.pickle", augment_with_fx_traces: bool = False) -> None:
    """Writes the snapshot of the current GPU for PyTorch's viewer and `plimsoll view`."""
    _plimsoll.dump_snapshot(filename, place())
