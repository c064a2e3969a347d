"""When steps are noted: whole windows while the run is young or something stays, single steps in the steady state. It
opens and closes `_making.py`; what was noted is judged by `_growth.py`."""

from __future__ import annotations

from ._growth import SETTLE_STEPS, WARM_UP_STEPS
from ._making import LONGEST_PAUSE, SAMPLE_STEPS, WINDOW_STEPS, Making
from ._places import Place


# Windows that come without a longer pause because an earlier one left something, in one run.
MOST_HURRIED = 12
# Steps over which a window is spread at most where several threads end steps: it sees one of them.
MOST_SPREAD_STEPS = 8 * WINDOW_STEPS


class Windows:
    """Turns noting on and off at step boundaries. While nothing stays, pauses grow to the longest, and then one step
    is noted after each: whatever a leak keeps was made in some step, so a step of which nothing stays tells that
    nothing leaks in every step."""

    def __init__(self, making: Making) -> None:
        self.making = making
        self.switch_at = WARM_UP_STEPS
        # Lines of which the latest single step left something behind for the first time.
        self.alarmed: set[Place | None] = set()
        self._pause = WINDOW_STEPS
        self._sampled: int | None = None
        self._hurried = 0
        # Whether the next is to be a whole one.
        self._is_asked = False
        self._known: set[Place | None] = set()

    def begin_anew(self, step: int) -> None:
        """Another loop has begun, whose state is made lazily too: a window opens after that, and one that is open stays
        until it has seen as many judged steps as any."""
        self.switch_at = step + WARM_UP_STEPS + (WINDOW_STEPS if self.making.is_noting else 0)

    def look_often(self) -> None:
        """Something new grows."""
        self._pause = WINDOW_STEPS

    @property
    def are_single_steps(self) -> bool:
        """Whether the steady state has come, in which single steps are noted."""
        return self._pause == LONGEST_PAUSE

    def ask(self, step: int) -> None:
        """A whole window is wanted, now or after the one that is open."""
        self._is_asked = True
        if not self.making.is_noting:
            self.switch_at = step

    def is_due(self, step: int) -> bool:
        return step >= self.switch_at

    def tick(self, step: int) -> bool:
        """Opens or closes what is due; False if a window could not be opened."""
        self.alarmed = set()
        if self._sampled is not None and step > self._sampled + SETTLE_STEPS:
            self._judge_sample(step)
        if self.making.is_noting and not self.making.is_here and step < self.making.window + MOST_SPREAD_STEPS:
            # Another thread has ended this step, which is not noted: the window is longer by it.
            self.switch_at = max(self.switch_at, step) + 1
            return True
        if step < self.switch_at:
            return True
        if self.making.is_noting:
            self.making.close()
            if self._is_rare_keeper_possible(step):
                self._pause = WINDOW_STEPS
            self.switch_at = step + (1 if self._is_asked else self._pause)
            self._pause = min(self._pause * 2, LONGEST_PAUSE)
            return True
        if not self.making.open():
            self.switch_at = step + WINDOW_STEPS
            return False
        is_sample = self.are_single_steps and not self._is_asked
        self._sampled = step if is_sample else None
        self._is_asked = False
        self.switch_at = step + (SAMPLE_STEPS if is_sample else WINDOW_STEPS)
        return True

    def _is_rare_keeper_possible(self, step: int) -> bool:
        """Whether a step before the latest has left something: a line that keeps what every tenth step makes needs more
        windows than one that keeps all. A few times in a run."""
        if self._hurried >= MOST_HURRIED:
            return False
        # A list, as another thread may note meanwhile.
        rows = list(self.making.rows.values())
        has_stayed = any(row.step < step - SETTLE_STEPS and not row.epoch and row.is_alive() for row in rows)
        self._hurried += has_stayed
        return has_stayed

    def _judge_sample(self, step: int) -> None:
        """What of the noted step has outlived the steps after it asks for a whole window."""
        sampled, self._sampled = self._sampled, None
        stayed = {row.place for row in list(self.making.rows.values()) if row.step == sampled and row.is_alive()}
        if stayed:
            self.ask(step)
            self.alarmed = stayed - self._known
            self._known |= stayed
