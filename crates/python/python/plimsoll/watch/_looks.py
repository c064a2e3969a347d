"""The looks of one run: when a census is due, and what it says of who holds what grows. `_session.py` asks at the end of
each step; `_growth.py` has judged by then which lines grow, `_census.py` walks, and `_naming.py` makes the findings."""

from __future__ import annotations

import collections
import functools
import gc
import time
from typing import Any, Callable, Iterable

from torch._C._autograd import _get_sequence_nr

from . import _kinds as kinds
from ._census import Census
from ._contained import contained
from ._copied import Copied
from ._cycles import freed_by_collector, held_by_cycles, without_collections
from ._excluded import Excluded
from ._findings import Finding, Owner
from ._growth import SETTLE_STEPS, TOLERATED_BYTES, Suspect
from ._holders import Hold
from ._lengthening import Lengthening
from ._making import Making, Row
from ._naming import (
    Iterators,
    Libraries,
    add_nodes,
    copied_finding,
    cycle_finding,
    finding_of,
    grouped,
    join,
    key_of,
    longer_finding,
    nodes_finding,
    unseen_finding,
)
from ._nodes import Nodes
from ._others import others_of, others_of_nodes
from ._places import Place
from ._put_off import NotWhole, PutOff
from ._snapshot import Snapshot
from ._steps import Steps
from ._undisturbed import PATIENCE, Moment
from ._unseen import Unseen
from ._windows import Windows

# The steps of the first censuses; later ones come with windows, as far apart as their cost allows
# while something grows and while nothing does.
FIRST_CENSUSES = (8, 12, 16)
CENSUS_SHARE = 0.03
IDLE_CENSUS_SHARE = 0.01
# A census beyond this is slow, and comes as rarely as its share of the time allows.
SLOW_SECONDS = 0.25
# While something grows it is looked at again when the run is longer by this factor.
LOOK_AGAIN = 1.5
# Collections that the watch itself asks for in one run: each takes seconds.
MOST_COLLECTIONS = 2


class Looks:
    """What the censuses of one run have found so far."""

    def __init__(self, making: Making, steps: Steps, windows: Windows, limit: Callable[[str], None]) -> None:
        """`limit` takes what the report is to say about what could not be seen."""
        self.nodes = Nodes()
        self.unseen = Unseen()
        self.copied = Copied()
        self.lengthening = Lengthening(making)
        self.put_off = PutOff(CENSUS_SHARE)
        # What the latest census has named, and the step at which each of it was named first.
        self.found: list[Finding] = []
        self.first_told: dict[str, int] = {}
        # Reference cycles, which are looked for rarely, and so stay told.
        self.cycles: list[Finding] = []
        # What was alive at the latest look, where it is asked for.
        self.keeps_snapshot = False
        self.snapshot: Snapshot | None = None
        self.making = making
        self._steps = steps
        self._windows = windows
        self._limit = limit
        # The numbers of the first graph nodes of the latest steps.
        self._first_nodes = collections.deque([0], maxlen=SETTLE_STEPS + 1)
        # The watch's own objects, which a census passes by.
        self._own: list[Any] = [self, vars(self), making, self.nodes, self.unseen, self.copied, self.lengthening, steps]
        self._cycle_lines: set[Place | None] = set()
        self._collections = 0
        self._libraries = Libraries()
        self._iterators = Iterators()
        # Steps at or after which one is due.
        self._due_at: set[int] = set(FIRST_CENSUSES)
        # The step and seconds of the last, when it ended by this thread's time, and the clock
        # before which nothing has changed.
        self._last = (0, 0.0)
        self._ended = 0.0
        self._ask_at = 0.0
        # How long the last one waited for other threads.
        self._waited = 0.0

    # ---- when ----

    def come_also_after(self, step: int, steps: tuple[int, ...]) -> None:
        self._due_at |= {step + after for after in steps}

    @property
    def last_due_at(self) -> int:
        return max(self._due_at, default=0)

    def is_due(self, step: int, is_suspected: bool) -> bool:
        """`is_suspected` says that a line grows."""
        if self.put_off:
            return self.put_off.is_due()
        last, took = self._last
        is_cheap = took < SLOW_SECONDS
        if is_cheap and last != step and (any(at <= step for at in self._due_at) or self.copied.is_emptied(self.making, step)):
            return True
        if is_cheap and last != step and self.making.is_open:
            if self.lengthening.wants_owner() or any(one.wants_look(self.making, step) for one in (self.unseen, self.copied)):
                return True
        is_growing = is_suspected or bool(self.found)
        if is_growing and is_cheap and step >= last * LOOK_AGAIN:
            return True
        is_wanted = is_growing or self.keeps_snapshot
        # Without windows looks alone can tell what grows.
        could_note = self.making.is_open or bool(self.making.refused)
        if not is_wanted and not (could_note and self._windows.is_due(step)):
            return False
        share = CENSUS_SHARE if is_wanted else IDLE_CENSUS_SHARE
        return self._has_worked_for((took + self._waited) / share)

    def _has_worked_for(self, seconds: float) -> bool:
        """Whether the program has had so much of the processor since the last census. Only that can be compared with
        what a census takes; asking is slow on some systems, so it is not asked before the clock says it may be."""
        now = time.perf_counter()
        if now < self._ask_at:
            return False
        left = seconds - (time.thread_time() - self._ended)
        if 0 < left <= seconds:
            self._ask_at = now + left
            return False
        return True

    def step_ended(self) -> None:
        self._first_nodes.append(_get_sequence_nr())

    @property
    def first_young_node(self) -> int:
        """The number from which on graph nodes belong to the latest steps."""
        return self._first_nodes[0]

    # ---- what ----

    def pass_by(self, own: Iterable[Any]) -> None:
        self._own += own

    def own_ids(self) -> set[int]:
        return {id(one) for one in self._own}

    def census(
        self,
        skip: set[int] | None = None,
        edges: set[Any] | None = None,
        has_libraries: bool = False,
        traceback: Any = None,
        has_modules: bool = False,
        has_iterators: bool = False,
        must_be_whole: bool = True,
    ) -> Census:
        with without_collections():
            census = Census(
                self.own_ids() | (skip or set()),
                self.first_young_node,
                edges,
                has_libraries,
                traceback,
                self._steps.loaders(),
                has_modules=has_modules,
                has_addresses=self.keeps_snapshot,
                has_iterators=has_iterators or self._iterators.are_followed,
            )
        if must_be_whole and not census.is_whole:
            raise NotWhole
        if not census.is_complete:
            self._limit("the program has more objects than one look follows: some holders may be unnamed")
        return census

    def take(
        self, step: int, suspects: dict[Place | None, Suspect], excluded: Excluded, patience: float = PATIENCE
    ) -> None:
        """Names what grows, or puts it off while another thread computes: what is not whole is not judged."""
        began = time.perf_counter()
        try:
            with Moment(patience) as moment:
                self._waited = moment.waited
                self._name(step, suspects, excluded)
            self._due_at = {at for at in self._due_at if at > step} | self.put_off.make_up(step)
        except NotWhole:
            self.put_off.add(step, time.perf_counter() - began)

    def _name(self, step: int, suspects: dict[Place | None, Suspect], excluded: Excluded) -> None:
        """Who holds what grows, and how many nodes each holder has."""
        # The processor's time, not the clock's: a busy machine must not change what is found.
        began = time.thread_time()
        census = self.census()
        if self._last[0] != step:
            self.nodes.take(census, self.making.place_of_key, step)
            containers = contained(census)
            self.unseen.take(containers, census, self.making, step)
            self.copied.take(containers, census, self.making, step)
            self.lengthening.take(census)
        self._ended = time.thread_time()
        self._ask_at = 0.0
        took = self._ended - began
        self._last = (step, took)
        if self.keeps_snapshot:
            self.snapshot = Snapshot(census, self.making.rows, step)
        groups, unknown = grouped(suspects.values(), census, excluded.keys())
        self._name_unknown(unknown, groups, census.is_complete, step)
        join(groups, suspects.values())
        is_cheap = took < SLOW_SECONDS
        named: list[Finding] = []
        for group in groups.values():
            if group.bytes_per_step >= TOLERATED_BYTES:
                others = self._others(others_of, group) if is_cheap else []
                finding = finding_of(group, others, step)
                if finding is not None:
                    named.append(finding)
        add_nodes(named, self._nodes_found(step, is_cheap, census.nodes))
        for found in (
            [unseen_finding(growing, step) for growing in self.unseen.growing()],
            [longer_finding(growing, step) for growing in self.lengthening.growing()],
            [copied_finding(growing, step) for growing in self.copied.growing()],
        ):
            told = {holder for finding in named for holder in finding.holders}
            named += [finding for finding in found if finding.holder not in told]
        self.found = named
        for finding in self.found:
            self._tell_first(finding, step)

    def _name_unknown(
        self, unknown: list[tuple[Suspect, Row]], groups: dict[Any, Any], is_complete: bool, step: int
    ) -> None:
        """What no name leads to: nameless iterators, cycles and libraries are looked through for it, in this order."""
        unknown_bytes = sum(row.bytes for _, row in unknown)
        if not unknown or unknown_bytes * 2 < TOLERATED_BYTES * max(s.judged_steps for s, _ in unknown):
            return
        if is_complete:
            unknown = self._iterators.name(unknown, groups, self.census)
            self._libraries.name(self._name_cycles(unknown, step), groups, self.census)
            return
        lost = Owner(kinds.VALUE, Hold(None, "inside", "", "structure that is too large to follow"), False)
        for suspect, row in unknown:
            groups[key_of(lost.hold)].add(suspect, row, lost)

    def _nodes_found(self, step: int, is_cheap: bool, counted: dict[Any, Any]) -> list[Finding]:
        growing = self.nodes.growing()
        look = functools.partial(others_of_nodes, before=counted)
        others = [self._others(look, one) if is_cheap else [] for one in growing]
        return [nodes_finding(one, held_by, step) for one, held_by in zip(growing, others)]

    def _others(self, look: Callable[[Any, Any], list[Hold]], growing: Any) -> list[Hold]:
        """Who else holds it, where that can be looked at too: who holds it first is known in any case."""
        try:
            return look(growing, self.census)
        except NotWhole:
            return []

    def _name_cycles(self, unknown: list[tuple[Suspect, Row]], step: int) -> list[tuple[Suspect, Row]]:
        """Those that no cycle holds. What one look finds is told together, and its lines are known from then on."""
        unknown = [(suspect, row) for suspect, row in unknown if suspect.place not in self._cycle_lines]
        if not unknown or self._collections >= MOST_COLLECTIONS:
            return unknown
        self._collections += 1
        # A program that has switched the collector off wants none to come.
        look = freed_by_collector if gc.isenabled() else held_by_cycles
        held, said = look([row for _, row in unknown])
        keys = {row.key for row in held}
        finding, lines = cycle_finding([(suspect, row) for suspect, row in unknown if row.key in keys], said, step)
        if finding is not None:
            self._cycle_lines |= lines
            self._tell_first(finding, step)
            self.cycles.append(finding)
        return [(suspect, row) for suspect, row in unknown if row.key not in keys]

    def _tell_first(self, finding: Finding, step: int) -> None:
        self.first_told.setdefault(finding.line + finding.kind, step)

    def take_snapshot(self, error: BaseException | None = None) -> Snapshot:
        """What is alive now, for the end of a run: the frames that an error went through are still there with it. A run
        that ended well has let its functions' locals go, so what its latest look saw is told."""
        if self.snapshot is None or error is not None:
            traceback = error.__traceback__ if error is not None else None
            census = self.census(traceback=traceback, must_be_whole=False)
            self.snapshot = Snapshot(census, self.making.rows, self._steps.count)
        return self.snapshot
