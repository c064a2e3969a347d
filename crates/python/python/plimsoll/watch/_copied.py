"""Containers that are made again in each step, entries and all, with more of them every time: `kept = deepcopy(kept) + [x]`, or
a metric that copies its lists at each call. None of their storages outlives its step, so `_growth.py` sees nothing stay; told by
how many there are, look by look. A single tensor that grows so is `_lengthening.py`'s."""

from __future__ import annotations

import collections
from typing import Any, NamedTuple

from ._census import Census
from ._contained import Contained
from ._findings import Owner
from ._growth import PATIENCE, TOLERATED_BYTES
from ._making import Making
from ._naming import Copies
from ._places import Place

# Containers that are followed; those with the fewest bytes are dropped.
MOST_CONTAINERS = 64
# Looks in a row in which one has more, before it is told and before it is a verdict.
GROWING_LOOKS = 4
VERDICT_LOOKS = 5
# Looks in noted steps, which show that entries are copies of those of the step before.
LEAST_PROOFS = 2
# Windows that are asked for in one run, for containers that gain and are made again in single noted steps.
MOST_WINDOWS = 12
# Steps between two looks of which the second is taken for a container that gains.
LOOK_STEPS = 4
# A container of so many entries more in each step gains evenly; batches of different lengths do not.
EVENLY = 2


class _Look(NamedTuple):
    """What one census has seen of a container."""

    step: int
    bytes: int
    storages: int


class _Container:
    """The looks since it last had fewer entries."""

    def __init__(self, owner: Owner) -> None:
        self.owner = owner
        self.looks: collections.deque[_Look] = collections.deque(maxlen=VERDICT_LOOKS)
        self.proofs = 0
        # Whether all of it was made in the latest step when that was noted: copies or not, as the step before was not.
        self.is_made_again = False
        # The line that makes most of it.
        self.place: Place | None = None
        self._most_before_drop = 0

    def add(self, look: _Look) -> None:
        if self.looks and look.storages <= self.looks[-1].storages:
            self._most_before_drop = max(self._most_before_drop, self.looks[-1].bytes)
            self.looks.clear()
            self.proofs, self.is_made_again = 0, False
        self.looks.append(look)

    def prove(self, places: list[Place | None]) -> None:
        self.proofs += 1
        self.place = collections.Counter(places).most_common(1)[0][0]

    def wants_proof(self) -> bool:
        return len(self.looks) > 1 and self.is_made_again and self.proofs < LEAST_PROOFS

    def growth(self) -> Copies | None:
        """None if it does not grow."""
        if len(self.looks) < GROWING_LOOKS or self.proofs < LEAST_PROOFS or not self._is_even():
            return None
        before, now = self.looks[0], self.looks[-1]
        each = (now.bytes - before.bytes) / (now.step - before.step)
        if each < TOLERATED_BYTES or now.bytes <= PATIENCE * self._most_before_drop:
            return None
        return Copies(self.place, self.owner, each, _gain(before, now), len(self.looks) >= VERDICT_LOOKS)

    def _is_even(self) -> bool:
        """Whether it gains about as many entries a step between any two looks."""
        looks = list(self.looks)
        usual = _gain(looks[0], looks[-1])
        gains = (_gain(before, after) for before, after in zip(looks, looks[1:]))
        return all(usual / EVENLY <= gain <= usual * EVENLY for gain in gains)


def _gain(before: _Look, after: _Look) -> float:
    """Entries a step."""
    return (after.storages - before.storages) / (after.step - before.step)


class Copied:
    """The containers that may be such."""

    def __init__(self) -> None:
        self._known: dict[Any, _Container] = {}
        self._windows = 0

    def take(self, containers: dict[Any, Contained], census: Census, making: Making, step: int) -> None:
        can_prove, is_noted = _can_prove(making, step), making.noted[-1:] == [step - 1]
        self._known = {edge: known for edge, known in self._known.items() if edge in containers}
        for edge, (owner, keys) in containers.items():
            rows = [making.rows[key] for key in keys if key in making.rows]
            made = sum(row.is_copy if can_prove else row.step == step - 1 for row in rows)
            older = sum(row.step < step - 1 for row in rows)
            if is_noted and (2 * older > len(keys) or 2 * made < len(keys)):
                # It keeps what it has, and the windows judge it; or it is made of something else in each step.
                self._known.pop(edge, None)
                continue
            known = self._known.setdefault(edge, _Container(owner))
            known.owner = owner
            known.add(_Look(step, sum(census.bytes_of[key] for key in keys), len(keys)))
            if can_prove:
                known.prove([row.place for row in rows if row.is_copy])
            known.is_made_again = known.is_made_again or is_noted
        by_bytes = sorted(self._known, key=lambda edge: self._known[edge].looks[-1].bytes)
        for edge in by_bytes[: max(len(by_bytes) - MOST_CONTAINERS, 0)]:
            del self._known[edge]

    def is_emptied(self, making: Making, step: int) -> bool:
        """Whether the step that ended was noted and has made far fewer entries of a container that grows than it had."""
        if making.noted[-1:] != [step - 1]:
            return False
        growing = {known.place: known for known in self._known.values() if known.growth() is not None}
        if not growing:
            return False
        made = collections.Counter(row.place for row in list(making.rows.values()) if row.step == step - 1)
        return any(2 * made[place] < known.looks[-1].storages for place, known in growing.items())

    def wants_look(self, making: Making, step: int) -> bool:
        """Whether a look now would prove more of a container that gains."""
        return _can_prove(making, step) and any(
            len(known.looks) > 1 and step >= known.looks[-1].step + LOOK_STEPS and known.growth() is None
            for known in self._known.values()
        )

    def wants_window(self) -> bool:
        """Whether a window would prove what single noted steps cannot. A few times in a run."""
        if self._windows >= MOST_WINDOWS or not any(known.wants_proof() for known in self._known.values()):
            return False
        self._windows += 1
        return True

    def growing(self) -> list[Copies]:
        found = (known.growth() for known in self._known.values())
        return [growing for growing in found if growing is not None]


def _can_prove(making: Making, step: int) -> bool:
    """Whether the step that ended and the one before it were noted: it can be told then what was copied from that to this."""
    return making.noted[-2:] == [step - 2, step - 1]
