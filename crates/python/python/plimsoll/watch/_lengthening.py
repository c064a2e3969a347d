"""Tensors that a line makes of themselves, longer each time: `seen = torch.cat([seen, x])`. Only one of them lives,
so none outlives its steps and `_growth.py` sees nothing stay; told by what is joined and how long the result is. Who
holds it is asked at a look while the latest lives."""

from __future__ import annotations

from ._census import Census
from ._findings import Owner
from ._growth import PATIENCE, SUSPECT_STEPS, TOLERATED_BYTES, VERDICT_STEPS
from ._making import Making, Row
from ._naming import Longer
from ._places import Place

# Lines that are followed.
MOST_LINES = 64


class _Line:
    """The results of one line, of noted steps."""

    def __init__(self, row: Row) -> None:
        self.first, self.latest, self.before = row, row, row.bytes
        # The noted steps in which the result was made of an earlier step's.
        self.joined: set[int] = set()
        self.most_before_drop = 0
        self.owner: Owner | None = None

    def add(self, row: Row, is_of_itself: bool) -> None:
        if row.bytes < self.latest.bytes:
            # Begun anew: a sentence is complete, an episode over.
            self.most_before_drop = max(self.most_before_drop, self.latest.bytes)
            self.first, self.joined = row, set()
        self.before = self.latest.bytes if row.step > self.latest.step else self.before
        self.latest = row
        if is_of_itself:
            self.joined.add(row.step)

    @property
    def bytes_per_step(self) -> float:
        return (self.latest.bytes - self.first.bytes) / max(self.latest.step - self.first.step, 1)

    def grows(self, noted: list[int]) -> bool:
        if len(self.joined) < SUSPECT_STEPS or self.latest.bytes <= self.before:
            return False
        goes_on = not noted or self.latest.step >= noted[-max(len(noted) // 3, 1)]
        is_long = self.latest.bytes > PATIENCE * self.most_before_drop
        return goes_on and is_long and self.bytes_per_step >= TOLERATED_BYTES


class Lengthening:
    """Hears from `_making.py` of every join in a noted step."""

    def __init__(self, making: Making) -> None:
        self._making = making
        self._lines: dict[Place, _Line] = {}
        making.on_join = self._joined

    def _joined(self, row: Row, parts: list[Row]) -> None:
        if row.place is None:
            return
        is_of_itself = any(part.place == row.place and part.step < row.step for part in parts)
        line = self._lines.get(row.place)
        if line is None:
            if len(self._lines) >= MOST_LINES:
                return
            line = self._lines[row.place] = _Line(row)
        line.add(row, is_of_itself)

    def _growing(self) -> list[_Line]:
        return [line for line in self._lines.values() if line.grows(self._making.noted)]

    def wants_owner(self) -> bool:
        """Whether a line grows whose holder is not known, and a look now would tell."""
        return any(line.owner is None and line.latest.is_alive() for line in self._growing())

    def take(self, census: Census) -> None:
        for line in self._growing():
            found = census.owners.get(line.latest.key) if line.latest.is_alive() else None
            line.owner = found or line.owner

    def growing(self) -> list[Longer]:
        return [
            Longer(line.latest.place, line.owner, line.bytes_per_step, len(line.joined) >= VERDICT_STEPS)
            for line in self._growing()
            if line.owner is not None and line.latest.place is not None
        ]
