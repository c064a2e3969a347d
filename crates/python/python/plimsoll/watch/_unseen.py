"""Holders that grow by storages whose making is not seen: other threads make them, or the program's own dispatch mode
is on. Bytes by holder, census by census; a holder that only gains, although steps were noted meanwhile and none of
what it gained was, grows. It knows no lines; `_growth.py` judges what is seen."""

from __future__ import annotations

import collections
from typing import Any, NamedTuple

from ._census import Census
from ._contained import Contained
from ._findings import Owner, entries_of
from ._growth import PATIENCE, TOLERATED_BYTES
from ._making import Making

# Holders that are followed; those with the fewest bytes are dropped.
MOST_HOLDERS = 64
# Censuses in a row in which a holder gains before it is told, and before it is a verdict.
GROWING_CENSUSES = 3
VERDICT_CENSUSES = 4
# Steps between two censuses of which the second is taken for a holder that gains.
LOOK_STEPS = 4


class GrowingHolder(NamedTuple):
    owner: Owner
    bytes_per_step: float
    storages_per_step: float
    is_steady: bool
    # Whether as many entries of containers as before hold more of them.
    is_carried: bool


class _Look(NamedTuple):
    """What one census has seen of a holder."""

    step: int
    bytes: int
    storages: int
    entries: int | None


class Unseen:
    """How many bytes each container has had that no window saw being made."""

    def __init__(self) -> None:
        self._history: dict[Any, collections.deque[_Look]] = {}
        self._owners: dict[Any, Owner] = {}
        self._most_before_drop: collections.Counter[Any] = collections.Counter()
        self._noted = 0

    def take(self, containers: dict[Any, Contained], census: Census, making: Making, step: int) -> None:
        if len(making.noted) == self._noted and self._history and not making.refused:
            # No step was noted since: nothing can be told from what was not seen. Where windows are
            # refused nothing ever is.
            return
        self._noted = len(making.noted)
        for edge in set(self._history) | set(containers):
            keys: list[int] = []
            if edge in containers:
                self._owners[edge], keys = containers[edge]
            count = sum(census.bytes_of[key] for key in keys)
            if any(key in making.rows for key in keys):
                # The windows see what this one gains, and judge it.
                self._history.pop(edge, None)
                continue
            history = self._history.setdefault(edge, collections.deque(maxlen=VERDICT_CENSUSES))
            if history and count < history[-1].bytes:
                self._most_before_drop[edge] = max(self._most_before_drop[edge], history[-1].bytes)
            entries = entries_of(self._owners[edge].hold) if edge in self._owners else None
            history.append(_Look(step, count, len(keys), entries))
        self._forget()

    def _forget(self) -> None:
        by_bytes = sorted(self._history, key=lambda edge: self._history[edge][-1].bytes)
        for edge in by_bytes[: max(len(by_bytes) - MOST_HOLDERS, 0)]:
            del self._history[edge]
        for edge in self._owners.keys() - self._history.keys():
            del self._owners[edge]

    def wants_look(self, making: Making, step: int) -> bool:
        """Whether a holder has gained in each census so far, too few to tell, and another now would tell more: steps were
        noted since. Where windows lie depends on what has told steps, so fixed steps alone may miss them."""
        return bool(len(making.noted) > self._noted or making.refused) and any(
            1 < len(history) < GROWING_CENSUSES and _is_rising(history) and step >= history[-1].step + LOOK_STEPS
            for history in self._history.values()
        )

    def growing(self) -> list[GrowingHolder]:
        found = []
        for edge, history in self._history.items():
            if len(history) < GROWING_CENSUSES or not _is_rising(history) or edge not in self._owners:
                continue
            before, now = history[0], history[-1]
            steps = max(now.step - before.step, 1)
            each, storages = (now.bytes - before.bytes) / steps, (now.storages - before.storages) / steps
            # A few that are longer each time are not more.
            if storages <= 0 or each < TOLERATED_BYTES or now.bytes <= PATIENCE * self._most_before_drop[edge]:
                continue
            is_steady, is_carried = len(history) >= VERDICT_CENSUSES, before.entries == now.entries
            found.append(GrowingHolder(self._owners[edge], each, storages, is_steady, is_carried))
        return found


def _is_rising(history: collections.deque[_Look]) -> bool:
    counts = [look.bytes for look in history]
    return all(before < after for before, after in zip(counts, counts[1:]))
