"""What was put off: looks that could not be taken as another thread was computing. How many, when the next one may be tried, and
what is told meanwhile: lines that grow by the windows alone, and the report's words. It takes no look, which is `_looks.py`,
and does not know whether other threads are idle, which is `_undisturbed.py`."""

from __future__ import annotations

import time
from typing import Iterable

from ._findings import Finding
from ._growth import TOLERATED_BYTES, Suspect
from ._naming import unnamed_finding

# After one that was put off and then taken: the steps from there to the next ones.
MADE_UP_AFTER = (4, 8)
# Seconds that looks which are then put off may take before they are tried as rarely as others.
SPENT_AT_ONCE = 0.25


class NotWhole(Exception):
    """A look that could not be taken."""


class PutOff:
    """The looks of one run that were put off. It is true as long as none has been taken since."""

    def __init__(self, share: float) -> None:
        """`share` is the part of the time that trying may take."""
        self._share = share
        # How many, and the step of the latest.
        self.count = 0
        self.at = 0
        self._is_open = False
        # The clock before which none is tried again.
        self._try_at = 0.0
        self._spent = 0.0

    def __bool__(self) -> bool:
        return self._is_open

    def is_due(self) -> bool:
        """Whether one may be tried again."""
        return time.perf_counter() >= self._try_at

    def add(self, step: int, seconds: float) -> None:
        """One more, which took so long to try."""
        self._is_open = True
        self.count += 1
        self.at = step
        self._spent += seconds
        self._try_at = time.perf_counter() + seconds / self._share if self._spent > SPENT_AT_ONCE else 0.0

    def make_up(self, step: int) -> set[int]:
        """A look was taken. Gives back the steps of those that would have come meanwhile: growth is told by several."""
        was_open, self._is_open = self._is_open, False
        return {step + apart for apart in MADE_UP_AFTER} if was_open else set()

    def reopen(self) -> None:
        """What was looked at says nothing: it was too late."""
        self._is_open = True

    def findings(self, suspects: Iterable[Suspect], told: set[str], excluded: set[int]) -> list[Finding]:
        """Lines that grow whose holders could not be looked for, besides those that are told. They may be wanted, so they are no
        verdict."""
        if not self._is_open:
            return []
        suspects = (one._replace(rows=[row for row in one.rows if row.key not in excluded]) for one in suspects)
        found = [unnamed_finding(one, self.at) for one in suspects if one.bytes_per_step >= TOLERATED_BYTES]
        return [finding for finding in found if finding.line not in told]

    @property
    def words(self) -> str | None:
        """What was not looked at, for the report."""
        if not self.count:
            return None
        looks = f"{self.count} look{'' if self.count == 1 else 's'} (the last at step {self.at})"
        left = ", and none was taken since: what gradients and graphs hold is not known" if self._is_open else ""
        return f"other threads were computing: {looks} had to be put off{left}"
