"""Memory over time: `MemoryMonitor` samples a device beside a program and knows the exact peak, `MemoryTracker` tells what a
part of a program took. Both are the runtime's own (`memory::MemoryMonitor` in Rust), table and picture too.

    >>> import plimsoll
    >>> monitor = plimsoll.MemoryMonitor(interval=0.01, device="cpu")
    >>> monitor.start()
    >>> x = plimsoll.zeros(1_000_000)
    >>> peak = monitor.stop()
    >>> peak.allocated_bytes >= 4_000_000
    True
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from . import _plimsoll, cuda


class Sample(NamedTuple):
    """What there was at one moment, in bytes."""

    seconds: float
    """Since the monitor started."""
    allocated_bytes: int
    """What tensors hold on the device."""
    reserved_bytes: int
    """What the allocator holds there."""
    resident_bytes: int
    """What this process has in the host's memory."""
    other_bytes: int
    """What is in use on the device beside that: other processes, and the driver's own memory."""


class Peak(float):
    """The most that tensors held at once, as a number of GB, with the most of each figure in bytes."""

    allocated_bytes: int
    """Exact: the allocator's own count, not the largest sample."""
    reserved_bytes: int
    """Exact, too."""
    resident_bytes: int
    """The largest sample."""
    other_bytes: int
    """The largest sample."""

    def __new__(cls, allocated: int, reserved: int, resident: int, other: int) -> Peak:
        peak = super().__new__(cls, allocated / 1e9)
        peak.allocated_bytes, peak.reserved_bytes = allocated, reserved
        peak.resident_bytes, peak.other_bytes = resident, other
        return peak

    def __getnewargs__(self) -> tuple[int, int, int, int]:  # type: ignore[override]
        """What it is made of again, where it is copied or goes to another process."""
        return self.allocated_bytes, self.reserved_bytes, self.resident_bytes, self.other_bytes


class MemoryMonitor:
    """Samples the memory of a device (the first GPU, or the host if there is none) every `interval` seconds, in a thread of its
    own, from `start` to `stop`.

    `start` returns at once; as the target of a thread it does the same work. Between samples nothing is lost of the peak, which
    the allocator counts. After 20 000 samples every second one is dropped, and the interval doubles."""

    def __init__(self, interval: float = 1.0, device: Any = None) -> None:
        if not interval > 0:
            raise ValueError(f"the interval must be above 0 seconds, not {interval}")
        self.interval = float(interval)
        self.device = _place(device)
        self._running: _plimsoll._MemoryMonitor | None = None
        self._ended: _plimsoll._MemorySeries | None = None

    @property
    def running(self) -> bool:
        """Whether it samples now."""
        return self._running is not None

    @property
    def samples(self) -> list[Sample]:
        """What there was, moment by moment; empty before the first `start`."""
        series = self._series()
        return [Sample(*sample) for sample in series.samples] if series is not None else []

    @property
    def peak_memory(self) -> float:
        """The most that tensors held at once so far, in GB."""
        series = self._series()
        return series.peak[0] / 1e9 if series is not None else 0.0

    def start(self) -> None:
        """Begins anew: what an earlier run sampled is forgotten."""
        if self.running:
            raise RuntimeError("the monitor runs already; call stop first")
        self._running = _plimsoll._MemoryMonitor(self.device, self.interval)

    def stop(self) -> Peak:
        """Ends it; the peak, as a number of GB with figures in bytes."""
        if self._running is not None:
            self._ended, self._running = self._running.stop(), None
        if self._ended is None:
            raise RuntimeError("the monitor was not started")
        return Peak(*self._ended.peak)

    def __enter__(self) -> MemoryMonitor:
        self.start()
        return self

    def __exit__(self, *failure: Any) -> None:
        self.stop()

    def to_csv(self, path: Any = None) -> str:
        """The samples as a table with a head; written to `path` if one is given."""
        return _written(self._begun().to_csv(), path)

    def to_svg(self, path: Any = None) -> str:
        """The samples as a picture; written to `path` if one is given."""
        return _written(self._begun().to_svg(), path)

    def _series(self) -> _plimsoll._MemorySeries | None:
        return self._running.so_far() if self._running is not None else self._ended

    def _begun(self) -> _plimsoll._MemorySeries:
        series = self._series()
        if series is None:
            raise RuntimeError("the monitor was not started")
        return series


class MemoryTracker:
    """What a part of a program takes of a device (the first GPU, or the host if there is none), from `reset` on."""

    def __init__(self, device: Any = None) -> None:
        self.device = _place(device)
        self._tracker = _plimsoll._MemoryTracker(self.device)

    def reset(self) -> None:
        """Counts from here: what is cached is given back, and the device's peak starts at what there is."""
        self._tracker.reset()

    @property
    def start_bytes(self) -> int:
        """What there was at `reset`."""
        return self._tracker.start_bytes

    @property
    def allocated_bytes(self) -> int:
        """What there is more than at `reset`; below 0 where there is less."""
        return self._tracker.allocated_bytes

    @property
    def peak_bytes(self) -> int:
        """The most that there was more than at `reset`."""
        return self._tracker.peak_bytes

    def get_allocated(self) -> float:
        """What there is more than at `reset`, in GB."""
        return self.allocated_bytes / 1e9

    def get_peak(self) -> float:
        """The most that there was more than at `reset`, in GB."""
        return self.peak_bytes / 1e9

    def print_stats(self, label: str = "") -> None:
        """Prints both."""
        print(self._tracker.stats(label))


def _place(device: Any) -> _plimsoll.device:
    if device is None:
        device = "cuda" if cuda.is_available() else "cpu"
    # Opened now, so that the thread meets no error.
    return _plimsoll.empty(0, device=device).device


def _written(text: str, path: Any) -> str:
    if path is not None:
        Path(path).write_text(text)
    return text
