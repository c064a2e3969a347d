"""Graph nodes that stay on the host: a loss kept after backward holds hardly any tensor bytes, but every node of its
graph. Counted by holder at each census; a holder whose old nodes only become more grows."""

from __future__ import annotations

import collections
from typing import Any, Callable, NamedTuple

from ._findings import Owner, entries_of
from ._growth import PATIENCE, TOLERATED_BYTES

# Of host memory, for a node and what belongs to it; measured over the nodes of a GPT.
NODE_BYTES = 520
# Holders that are followed; those with the fewest nodes are dropped.
MOST_HOLDERS = 64


class GrowingNodes(NamedTuple):
    # What they are counted under.
    edge: Any
    owner: Owner
    line: Any
    nodes: int
    nodes_per_step: float
    is_steady: bool
    # Whether as many entries of containers as before hold more of them.
    is_carried: bool

    @property
    def bytes_per_step(self) -> float:
        return self.nodes_per_step * NODE_BYTES


class Nodes:
    """How many old nodes each holder has had, census by census."""

    def __init__(self) -> None:
        self._history: dict[Any, collections.deque[tuple[int, int]]] = {}
        self._entries: dict[Any, collections.deque[int | None]] = {}
        self._owners: dict[Any, Owner] = {}
        self._lines: dict[Any, Any] = {}
        self._most_before_drop: collections.Counter[Any] = collections.Counter()

    def take(self, census: Any, place_of: Callable[[Any], Any], step: int) -> None:
        for edge in set(self._history) | set(census.nodes):
            count, owner, keys = census.nodes.get(edge, (0, None, ()))
            history = self._history.setdefault(edge, collections.deque([(0, 0)], maxlen=4))
            if count < history[-1][1]:
                self._most_before_drop[edge] = max(self._most_before_drop[edge], history[-1][1])
            history.append((step, count))
            if owner is not None:
                self._owners[edge] = owner
                self._entries.setdefault(edge, collections.deque(maxlen=4)).append(entries_of(owner.hold))
            made = (place_of(key) for key in keys)
            line = next((place for place in made if place is not None), None)
            if line is not None:
                self._lines[edge] = line
        if len(self._history) > MOST_HOLDERS:
            by_count = sorted(self._history, key=lambda edge: self._history[edge][-1][1])
            for edge in by_count[: len(by_count) - MOST_HOLDERS]:
                for table in (self._history, self._entries, self._owners, self._lines):
                    table.pop(edge, None)

    def growing(self) -> list[GrowingNodes]:
        found = []
        for edge, history in self._history.items():
            (early, before), (late, now) = history[-2], history[-1]
            each = (now - before) / max(late - early, 1)
            if each * NODE_BYTES < TOLERATED_BYTES or now <= PATIENCE * self._most_before_drop[edge]:
                continue
            counts = [count for _, count in history]
            is_steady = len(counts) >= 3 and counts[-3] < counts[-2] < counts[-1]
            if edge in self._owners:
                entries = self._entries[edge]
                is_carried = len(entries) > 1 and entries[0] == entries[-1]
                owner, line = self._owners[edge], self._lines.get(edge)
                found.append(GrowingNodes(edge, owner, line, now, each, is_steady, is_carried))
        return found
