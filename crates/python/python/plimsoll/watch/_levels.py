"""Levels of memory over the steps, to tell which of them grows: the process's resident memory, and for each CUDA device
what is allocated to tensors, what is reserved by the allocator, and the peak; and how much of the process's memory is holes in its
heap. They blame no line."""

from __future__ import annotations

import ctypes
import os
from typing import Callable

from ._errors import is_an_answer

MOST_SAMPLES = 64
# Growth below either is the noise of allocators.
LEAST_BYTES = 16 << 20
LEAST_BYTES_PER_STEP = 16 << 10


class Series:
    """Samples of one level that thin out as the run grows longer."""

    def __init__(self, read: Callable[[], int | None], least_bytes: int = LEAST_BYTES) -> None:
        self.samples: list[tuple[int, int]] = []
        self._read = read
        self._least = least_bytes
        self._stride = 1

    def sample(self, step: int) -> None:
        if self.samples and step - self.samples[-1][0] < self._stride:
            return
        now = self._read()
        if now is None:
            return
        self.samples.append((step, now))
        if len(self.samples) >= MOST_SAMPLES:
            del self.samples[1::2]
            self._stride *= 2

    def growth_per_step(self) -> float:
        """Bytes a step if it rises in every third of the run, else 0."""
        if len(self.samples) < 6:
            return 0.0
        (first, low), (last, high) = self.samples[0], self.samples[-1]
        marks = [low, self._at(first + (last - first) / 3), self._at(first + 2 * (last - first) / 3), high]
        rises = [later - earlier for earlier, later in zip(marks, marks[1:])]
        if high - low < self._least or min(rises) < 0.15 * (high - low):
            return 0.0
        each = (high - low) / max(last - first, 1)
        return each if each >= LEAST_BYTES_PER_STEP else 0.0

    def _at(self, step: float) -> int:
        """The level at the latest sample up to a step."""
        return next(level for at, level in reversed(self.samples) if at <= step)


_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


def resident_bytes() -> int | None:
    """The process's resident memory; None where the system does not tell."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * _PAGE
    except (OSError, ValueError, IndexError) as error:  # not Linux
        if not is_an_answer(error):
            raise
        return None


class _HeapFacts(ctypes.Structure):
    """What `mallinfo2` answers."""

    _names = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost"
    _fields_ = [(name, ctypes.c_size_t) for name in _names.split()]


_heap_facts = getattr(ctypes.CDLL(None), "mallinfo2", None) if os.name == "posix" else None
if _heap_facts is not None:
    _heap_facts.restype = _HeapFacts


def bytes_of_holes() -> int | None:
    """What the C library's heap has free, between what is in use; None where it does not tell."""
    return _heap_facts().fordblks if _heap_facts is not None else None


class Levels:
    """All of them. Devices are found when the program uses them; the watch opens none."""

    # A device's counters are exact: less growth than of the process is told.
    LEAST_ON_DEVICE = 1 << 20

    def __init__(self) -> None:
        self.resident = Series(resident_bytes)
        self.holes = Series(bytes_of_holes)
        self.devices: dict[int, dict[str, Series]] = {}

    def sample(self, step: int) -> None:
        import torch

        self.resident.sample(step)
        self.holes.sample(step)
        if not torch.cuda.is_initialized():
            return
        for device in range(torch.cuda.device_count()):
            if device not in self.devices and torch.cuda.memory_reserved(device):
                self.devices[device] = {
                    "allocated": Series(_reader(torch.cuda.memory_allocated, device), self.LEAST_ON_DEVICE),
                    "reserved": Series(_reader(torch.cuda.memory_reserved, device), self.LEAST_ON_DEVICE),
                    "peak": Series(_reader(torch.cuda.max_memory_allocated, device), self.LEAST_ON_DEVICE),
                }
        for of in self.devices.values():
            for series in of.values():
                series.sample(step)

    def growing(self) -> dict[str, dict[str, float]]:
        """Bytes a step by place (`process`, `cuda:0`) and level, of those that grow."""
        found = {"process": {"resident": self.resident.growth_per_step()}}
        for device, of in self.devices.items():
            found[f"cuda:{device}"] = {name: series.growth_per_step() for name, series in of.items()}
        kept = {place: {name: each for name, each in of.items() if each} for place, of in found.items()}
        return {place: of for place, of in kept.items() if of}


def _reader(read: Callable[[int], int], device: int) -> Callable[[], int]:
    return lambda: read(device)


def meaning(names: set[str]) -> str:
    """What it means that these levels of a device grow and the others do not."""
    if "allocated" in names:
        return "tensors are kept from step to step"
    if names == {"reserved"}:
        return "no more tensors live, but the allocator's free blocks do not fit what is asked for: fragmentation, or shapes that vary"
    if "peak" in names:
        return "what lives between steps does not grow, but the largest moment within a step does: longer inputs, or a longer graph"
    return "what is no tensor counts here too"
