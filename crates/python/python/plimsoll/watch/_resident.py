"""The process's resident memory over the steps, to tell growth that is not tensors. It blames no line."""

from __future__ import annotations

import os

MOST_SAMPLES = 64
# Growth below either is the noise of allocators.
LEAST_BYTES = 16 << 20
LEAST_BYTES_PER_STEP = 16 << 10


class Resident:
    """Samples that thin out as the run grows longer."""

    def __init__(self) -> None:
        self.samples: list[tuple[int, int]] = []
        self._stride = 1
        self._page = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096

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

    def _read(self) -> int | None:
        try:
            with open("/proc/self/statm", "rb") as file:
                return int(file.read().split()[1]) * self._page
        except (OSError, ValueError, IndexError):  # not Linux
            return None

    def growth_per_step(self) -> float:
        """Bytes a step if it rises in every third of the run, else 0."""
        if len(self.samples) < 6:
            return 0.0
        third = len(self.samples) // 3
        marks = [self.samples[0], self.samples[third], self.samples[2 * third], self.samples[-1]]
        rises = [later[1] - earlier[1] for earlier, later in zip(marks, marks[1:])]
        (first, low), (last, high) = marks[0], marks[-1]
        if high - low < LEAST_BYTES or min(rises) < 0.15 * (high - low):
            return 0.0
        each = (high - low) / max(last - first, 1)
        return each if each >= LEAST_BYTES_PER_STEP else 0.0
