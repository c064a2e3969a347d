"""Memory over time: `MemoryMonitor` samples a device beside a program and knows the exact peak, `MemoryTracker` tells what a
part of a program took.

    >>> import plimsoll
    >>> monitor = plimsoll.MemoryMonitor(interval=0.01, device="cpu")
    >>> monitor.start()
    >>> x = plimsoll.zeros(1_000_000)
    >>> peak = monitor.stop()
    >>> peak.allocated_bytes >= 4_000_000
    True
"""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any, NamedTuple

from . import _plimsoll, cuda
from ._memory_chart import chart
from ._shown import size

#: How many samples are kept; beyond, every second one is dropped and the interval doubles.
MOST_SAMPLES = 20_000


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
    the allocator counts."""

    def __init__(self, interval: float = 1.0, device: Any = None) -> None:
        if not interval > 0:
            raise ValueError(f"the interval must be above 0 seconds, not {interval}")
        self.interval = float(interval)
        self.device = _place(device)
        self.samples: list[Sample] = []
        self._stopped = threading.Event()
        self._stopped.set()
        self._thread: threading.Thread | None = None

    @property
    def running(self) -> bool:
        """Whether it samples now."""
        return not self._stopped.is_set()

    @property
    def peak_memory(self) -> float:
        """The most that tensors held at once so far, in GB."""
        return self._scope.allocated_bytes / 1e9 if hasattr(self, "_scope") else 0.0

    def start(self) -> None:
        """Begins anew: what an earlier run sampled is forgotten."""
        if self.running:
            raise RuntimeError("the monitor runs already; call stop first")
        self.samples, self._began, self._every = [], time.perf_counter(), self.interval
        self._scope = _plimsoll.peak_scope(self.device)
        self._scope.__enter__()
        self._stopped.clear()
        self._sample()
        self._thread = threading.Thread(target=self._run, name="plimsoll.MemoryMonitor", daemon=True)
        self._thread.start()

    def stop(self) -> Peak:
        """Ends it; the peak, as a number of GB with figures in bytes."""
        if self._thread is None:
            raise RuntimeError("the monitor was not started")
        if self.running:
            self._stopped.set()
            self._thread.join()
            self._sample()
            self._scope.__exit__(None, None, None)
        most = [max(column) for column in zip(*self.samples)]
        return Peak(self._scope.allocated_bytes, self._scope.reserved_bytes, int(most[3]), int(most[4]))

    def __enter__(self) -> MemoryMonitor:
        self.start()
        return self

    def __exit__(self, *failure: Any) -> None:
        self.stop()

    def to_csv(self, path: Any = None) -> str:
        """The samples as a table with a head; written to `path` if one is given."""
        rows = [",".join(Sample._fields)]
        rows += [f"{sample.seconds:.6f},{','.join(map(str, sample[1:]))}" for sample in self.samples]
        return _written("\n".join(rows) + "\n", path)

    def to_svg(self, path: Any = None) -> str:
        """The samples as a picture; written to `path` if one is given."""
        lines = {
            "allocated": [sample.allocated_bytes for sample in self.samples],
            "reserved": [sample.reserved_bytes for sample in self.samples],
            "process": [sample.resident_bytes for sample in self.samples],
        }
        if self.device.type != "cpu":
            # On the host they would be the whole rest of the machine.
            lines["others"] = [sample.other_bytes for sample in self.samples]
        return _written(chart(f"memory of {self.device}", [sample.seconds for sample in self.samples], lines), path)

    def _run(self) -> None:
        while not self._stopped.wait(self._every):
            self._sample()

    def _sample(self) -> None:
        allocated, reserved = _plimsoll.memory_allocated(self.device), _plimsoll.memory_reserved(self.device)
        free, total = _plimsoll._memory_info(self.device)
        resident = _resident_bytes()
        own = resident if self.device.type == "cpu" else reserved
        seconds = time.perf_counter() - self._began
        self.samples.append(Sample(seconds, allocated, reserved, resident, max(0, total - free - own)))
        if len(self.samples) > MOST_SAMPLES:
            del self.samples[1::2]
            self._every *= 2


class MemoryTracker:
    """What a part of a program takes of a device (the first GPU, or the host if there is none), from `reset` on."""

    def __init__(self, device: Any = None) -> None:
        self.device = _place(device)
        self.reset()

    def reset(self) -> None:
        """Counts from here: what is cached is given back, and the device's peak starts at what there is."""
        _plimsoll.empty_cache(self.device)
        _plimsoll.reset_peak_memory_stats(self.device)
        self.start_bytes = _plimsoll.memory_allocated(self.device)

    @property
    def allocated_bytes(self) -> int:
        """What there is more than at `reset`; below 0 where there is less."""
        return _plimsoll.memory_allocated(self.device) - self.start_bytes

    @property
    def peak_bytes(self) -> int:
        """The most that there was more than at `reset`."""
        return _plimsoll.max_memory_allocated(self.device) - self.start_bytes

    def get_allocated(self) -> float:
        """What there is more than at `reset`, in GB."""
        return self.allocated_bytes / 1e9

    def get_peak(self) -> float:
        """The most that there was more than at `reset`, in GB."""
        return self.peak_bytes / 1e9

    def print_stats(self, label: str = "") -> None:
        """Prints both."""
        less = "-" if self.allocated_bytes < 0 else ""
        told = f"Allocated: {less}{size(abs(self.allocated_bytes))}, Peak: {size(self.peak_bytes)}"
        print(f"{label} - {told}" if label else told)


def _place(device: Any) -> _plimsoll.device:
    if device is None:
        device = "cuda" if cuda.is_available() else "cpu"
    # Opened now, so that the thread meets no error.
    return _plimsoll.empty(0, device=device).device


def _resident_bytes() -> int:
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return 0
    return next((1024 * int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:")), 0)


def _written(text: str, path: Any) -> str:
    if path is not None:
        Path(path).write_text(text)
    return text
