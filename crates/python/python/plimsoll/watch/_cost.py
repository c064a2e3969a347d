"""What the watch costs: how long steps take in which it notes, and others."""

from __future__ import annotations

import collections
from typing import Iterable

# Noted and other steps whose times are kept.
MOST_TIMED = 256


class StepTimes:
    """The times of a run's steps, those in which the watch noted apart from the others."""

    def __init__(self) -> None:
        # By whether they were noted: steps, their seconds, and what each of the latest took.
        self._durations: dict[bool, list[float]] = {True: [0, 0.0], False: [0, 0.0]}
        self._latest = {is_noted: collections.deque[float](maxlen=MOST_TIMED) for is_noted in (True, False)}
        self._resumed_at = 0.0
        self._last_step = 0

    def step_ended(self, step: int, now: float, was_noted: bool) -> None:
        if self._resumed_at:
            of, steps = self._durations[was_noted], step - self._last_step
            of[0] += steps
            of[1] += now - self._resumed_at
            self._latest[was_noted].append((now - self._resumed_at) / max(steps, 1))
        self._last_step = step

    def step_begins(self, now: float) -> None:
        """The watch is done with the end of a step, and the program goes on."""
        self._resumed_at = now

    @property
    def program_seconds(self) -> float:
        """How long all steps took, without what the watch did between them."""
        return sum(seconds for _, seconds in self._durations.values())

    @property
    def noting_seconds(self) -> float:
        """What noted steps took longer than others. By medians: the first step, and one in which the program waits or evaluates,
        would be taken for the watch's doing."""
        noted, plain = self._latest[True], self._latest[False]
        slower = _median(noted) - _median(plain) if noted and plain else 0.0
        return self._durations[True][0] * max(slower, 0.0)


def _median(values: Iterable[float]) -> float:
    """Not Python's `statistics`: it is imported late, when a program may have a module of that name."""
    ordered = sorted(values)
    half = len(ordered) // 2
    return (ordered[half] + ordered[~half]) / 2
