"""One watched run: at the end of each step it opens and closes windows, judges what stays, and names who holds it.
The parts decide (`_making.py`, `_growth.py`, `_census.py`, `_nodes.py`, `_cycles.py`); this is when. It imports
PyTorch; `__init__.py` has the public names."""

from __future__ import annotations

import collections
import functools
import gc
import os
import threading
import time
import weakref
from typing import Any, Callable, Iterable

from torch._C._autograd import _get_sequence_nr

from . import _kinds as kinds
from ._census import Census
from ._cycles import freed_by_collector, held_by_cycles, without_collections
from ._errors import is_programs_own
from ._excluded import Excluded
from ._findings import LONGER, Finding, Owner
from ._growth import SETTLE_STEPS, TOLERATED_BYTES, VERDICT_STEPS, WARM_UP_STEPS, Growth, Suspect
from ._holders import Hold
from ._lengthening import Lengthening
from ._levels import Levels
from ._making import WINDOW_STEPS, Making, Row
from ._naming import (
    Iterators,
    Libraries,
    add_nodes,
    cycle_finding,
    finding_of,
    grouped,
    is_one_pass,
    join_gradients,
    join_spread,
    key_of,
    longer_finding,
    nodes_finding,
    others_of,
    others_of_nodes,
    unseen_finding,
)
from ._nodes import Nodes
from ._places import Place, follow_program
from ._out_of_memory import Shortages
from ._phases import Phase, Phases
from ._put_off import NotWhole, PutOff
from ._snapshot import Snapshot
from ._steps import LOADER, OPTIMIZER, Steps
from ._undisturbed import PATIENCE, Moment
from ._unseen import Unseen
from ._windows import Windows

# Steps between two judgements, in and after windows and between them.
JUDGE_EVERY = 2
JUDGE_BETWEEN = 16
# The steps of the first censuses; later ones come with windows, as far apart as their cost allows
# while something grows and while nothing does.
FIRST_CENSUSES = (8, 12, 16)
CENSUS_SHARE = 0.03
IDLE_CENSUS_SHARE = 0.01
# A judgement or census beyond this is slow, and comes as rarely as its share of the time allows.
# A judgement of fewer rows is not: asking for the processor's time can cost more than it.
SLOW_SECONDS = 0.25
MANY_ROWS = 10_000
# While something grows it is looked at again when the run is longer by this factor.
LOOK_AGAIN = 1.5
# Steps of the shortest block of the program's own that is watched like a run: it has a window that can be judged.
LEAST_BLOCK = WARM_UP_STEPS + WINDOW_STEPS + SETTLE_STEPS
# Noted and other steps whose times are kept, to tell the watch's cost.
MOST_TIMED = 256
# How long the last look of a run waits for other threads, where one was put off.
LAST_PATIENCE = 0.5
# Looks that errors of the program's have ended before it is told.
MOST_INTERRUPTIONS = 3
# Collections that the watch itself asks for in one run: each takes seconds.
MOST_COLLECTIONS = 2


class Session:
    """What is known of one run. `start` and `stop` bracket it; `findings` can be read at any time."""

    def __init__(self) -> None:
        self.making = Making()
        self.growth = Growth()
        self.nodes = Nodes()
        self.unseen = Unseen()
        self.lengthening = Lengthening(self.making)
        self.levels = Levels()
        self.phases: Phases | None = None
        self.steps = Steps(self._step_ended, self._epoch_ended, self._pass_ended, self._pass_begun)
        self.suspects: dict[Place | None, Suspect] = {}
        self.first_told: dict[str, int] = {}
        self.limits: dict[str, None] = {}
        self.excluded = Excluded()
        self.on_findings: Any = None
        # Who tells the figures while the program runs (`_live.py`).
        self.live: Any = None
        self.is_running = False
        self.fillings: list[Any] = []
        self.shortages = Shortages(self)
        self.making.on_error = lambda error: self.shortages.noted(error)
        self.steps.on_call = self.making.be_heard
        self.steps.on_step_elsewhere = self._take_off_window
        self.steps.on_trouble = self._give_up
        # What was alive at the latest look, where it is asked for.
        self.keeps_snapshot = False
        self.snapshot: Snapshot | None = None
        self.own_seconds = 0.0
        self._found: list[Finding] = []
        self._cycles: list[Finding] = []
        self._cycle_lines: set[Place | None] = set()
        self._collections = 0
        self._libraries = Libraries()
        self._iterators = Iterators()
        self.windows = Windows(self.making)
        # Steps at or after which one is due.
        self._census_at: set[int] = set(FIRST_CENSUSES)
        self._sequence = collections.deque([0], maxlen=SETTLE_STEPS + 1)
        # The step and seconds of the last, when it ended by this thread's time, and the clock
        # before which nothing has changed.
        self._last_census = (0, 0.0)
        # How long the last one waited for other threads.
        self._waited = 0.0
        self._census_ended = 0.0
        self._ask_at = 0.0
        # How many looks the program's own errors have ended, and the clock before which none is taken again.
        self._interruptions = 0
        self._rest_until = 0.0
        # The step at which a watch of the program's own joined last.
        self._joined_at: int | None = None
        self._lock = threading.RLock()
        self._pid = os.getpid()
        self._is_busy = False
        self._has_given_up = False
        self.put_off = PutOff(CENSUS_SHARE)
        self._asked: Any = None
        # Which thread has ended the latest step.
        self._clock_thread = 0
        self._judge_at = 0.0
        # By whether they were noted: steps, their seconds, and what each of the latest took.
        self._durations: dict[bool, list[float]] = {True: [0, 0.0], False: [0, 0.0]}
        self._latest = {is_noted: collections.deque[float](maxlen=MOST_TIMED) for is_noted in (True, False)}
        self._ended_at = 0.0
        self._ended_step = 0

    # ---- life ----

    def start(self) -> Session:
        self.is_running = True
        follow_program()
        if self.phases is not None:
            # Before the steps: a phase's end comes before what is done at the end of a step.
            self.phases.start()
        self.steps.start()
        self.shortages.start()
        if self.live is not None:
            self.live.start()
        if hasattr(os, "register_at_fork"):
            # Weakly: what is registered is never forgotten.
            leave = weakref.WeakMethod(self._leave_child)
            os.register_at_fork(after_in_child=lambda: (method := leave()) and method())
        return self

    def stop(self) -> None:
        if not self.is_running:
            return
        self._enter(self._last_look, waits=True)
        self.is_running = False
        if self.live is not None:
            self.live.stop()
        self.making.close()
        self._stop_following()
        self._finish()

    def _leave_child(self) -> None:
        """A forked process (a loader's worker) is not watched: it runs as without the watch."""
        if self.is_running:
            self.is_running = False
            if self.live is not None:
                self.live.leave_child()
            self.making.close()
            self._stop_following()

    def _stop_following(self) -> None:
        self.steps.stop()
        self.shortages.stop()
        if self.phases is not None:
            self.phases.stop()

    def serve_live(self, every: float | None = None, write: Callable[[str], None] = lambda _: None) -> None:
        """To be called before `start`. The program is watched whether or not its figures can be served."""
        from ._live import Live
        from ._live_socket import CannotServe

        try:
            self.live = Live(self, every, write)
        except CannotServe as error:
            self._limit(f"`plimsoll top` could not look at the program: {error}")

    def follow_phases(self) -> None:
        """To be called before `start`."""
        self.phases = Phases(self.making)
        self.phases.on_trouble = self._give_up

    @property
    def phase_table(self) -> list[Phase]:
        return self.phases.told() if self.phases is not None else []

    @property
    def is_ours(self) -> bool:
        return os.getpid() == self._pid

    # ---- steps ----

    def _enter(self, work: Callable[[], None], waits: bool = False) -> None:
        """The one way to what is done at the end of a step: whatever goes wrong in there ends the watch, and the program goes
        on. Only what the program itself has raised, in a handler of a signal, is raised in it. What hears of steps, phases and
        errors on the way here is guarded by its own files, to the same end."""
        if not self.is_running or self._has_given_up or not self._lock.acquire(blocking=waits):
            return
        was_busy, self._is_busy = self._is_busy, True
        began = time.perf_counter()
        try:
            work()
        except BaseException as error:
            if not isinstance(error, Exception) or is_programs_own(error):
                self._interrupted(began)
                raise
            self._give_up(error)
        finally:
            self._is_busy = was_busy
            if not was_busy:
                Moment.leave_rest()
                self.own_seconds += time.perf_counter() - began
            self._lock.release()

    def _interrupted(self, began: float) -> None:
        """Looks that the program's handlers of signals end are taken again as rarely as their cost asks for: a program that gives
        each request a tenth of a second would else spend it in the same look every time."""
        now = time.perf_counter()
        self._rest_until = now + (now - began) / CENSUS_SHARE
        self._interruptions += 1
        if self._interruptions == MOST_INTERRUPTIONS:
            self._limit("errors that the program's handlers of signals raise have ended looks: some holders may be unnamed")

    def _give_up(self, error: Exception) -> None:
        if self._has_given_up:
            return
        self._has_given_up = True
        self.making.is_noting = False
        self._limit(f"the watch stopped at step {self.steps.count}: {type(error).__name__}: {error}")
        self.making.close()
        self.shortages.stop()
        self.steps.rest()

    def _step_ended(self, is_new_clock: bool) -> None:
        def work() -> None:
            with self.making.paused():
                self._time_step(time.perf_counter(), was_noting)
            self._tick(is_new_clock)
            asked, self._asked = self._asked, None
            if asked is not None:
                asked()

        was_noting = self.making.is_noting
        try:
            self._enter(work)
        finally:
            self._ended_at = time.perf_counter()

    def _time_step(self, now: float, was_noting: bool) -> None:
        if self._ended_at:
            of, steps = self._durations[was_noting], self.steps.count - self._ended_step
            of[0] += steps
            of[1] += now - self._ended_at
            self._latest[was_noting].append((now - self._ended_at) / max(steps, 1))
        self._ended_step = self.steps.count

    def _tick(self, is_new_clock: bool) -> None:
        step = self.steps.count
        self._clock_thread = threading.get_ident()
        self._sequence.append(_get_sequence_nr())
        self.making.tick(step)
        self.shortages.follow_device()
        if is_new_clock and step > 1:
            # Another loop: its state is made lazily too.
            self.growth.warm_up(step)
            self.windows.begin_anew(step)
        with self.making.paused():
            if time.perf_counter() >= self._rest_until:
                if self._is_judgement_due(step):
                    self._judge(step)
                if self._is_census_due(step):
                    self._look(step)
            if self.on_findings is not None:
                self.on_findings(step)
            if self.live is not None:
                self.live.step_ended(step, lambda: self._census(has_modules=True, must_be_whole=False))
        is_open = self.windows.tick(step)
        if self.making.trouble:
            # Also where it was within a window, and the next one could be opened.
            self._limit(self.making.trouble)
        elif not is_open and not self.making.is_elsewhere:
            self._limit(self.making.refused)
        if self.windows.alarmed:
            # Small results may hold large graphs: count nodes now and after the window.
            self._census_at |= {step + 1, step + WINDOW_STEPS}
        self._be_quiet(step)

    def _be_quiet(self, step: int) -> None:
        """Where nothing is due for some time, steps are only counted until something is."""
        if self.making.rows or self.making.is_open or self.suspects or self._found or self.on_findings is not None:
            return
        if self.put_off:
            return
        if self.live is not None and self.live.is_looked_at:
            return
        if step > max(self._census_at, default=0) and not self.keeps_snapshot:
            # A census then takes older nodes for old: those made before the pause.
            self.steps.quiet_until = self.windows.switch_at

    def _pass_ended(self) -> None:
        if self.steps.epochs and self._clock_thread == threading.get_ident():
            self._enter(lambda: self.making.pass_ended(self.steps.epochs))

    def _pass_begun(self) -> None:
        if self._clock_thread != threading.get_ident():
            # A thread that reads batches for another, which ends the steps.
            self._take_off_window()
            return
        if self.making.epoch or self.making.is_between:
            self._enter(self.making.pass_begun)

    def _take_off_window(self) -> None:
        """In a thread that ends no steps any more."""
        if self.making.is_here:
            self._enter(self.making.close)

    def _epoch_ended(self) -> None:
        if self.suspects:
            self._enter(self._judge_and_look, waits=True)

    def _judge_and_look(self) -> None:
        with self.making.paused():
            self._judge(self.steps.count)
            self._look(self.steps.count)

    def _last_look(self) -> None:
        """At the end of a run, where one was put off and nothing is known: what names lead to by then can still be told."""
        if (self.put_off or self._interruptions) and not self._found:
            with self.making.paused():
                self._look(self.steps.count, LAST_PATIENCE)
            if not self._found:
                # What was held while the program ran may be gone by now.
                self.put_off.reopen()

    # ---- judgement ----

    def _judge(self, step: int) -> None:
        self.levels.sample(step)
        is_large = len(self.making.rows) > MANY_ROWS
        began = time.thread_time() if is_large else 0.0
        self.growth.let_go(self.making.prune(), step)
        before = set(self.suspects)
        rows = list(self.making.rows.values())
        self.suspects = self.growth.epoch_suspects(rows, self.making.noted_epochs, step)
        self.suspects |= self.growth.suspects(rows, self.making.noted, step)
        took = time.thread_time() - began if is_large else 0.0
        # Very many live storages: judge as rarely as its cost asks for.
        self._judge_at = time.perf_counter() + took / CENSUS_SHARE if took > SLOW_SECONDS else 0.0
        if set(self.suspects) - before:
            # Something new: look soon and often.
            self.windows.look_often()
            self._look(step)
        elif len(self.suspects) < len(before):
            self._found = [finding for finding in self._found if self._is_still_held(finding)]

    def _is_still_held(self, finding: Finding) -> bool:
        held = {str(place) for place in self.suspects}
        is_of_censuses = finding.kind == kinds.NODES or finding.cause == LONGER[0] or not finding.lines
        return is_of_censuses or any(line in held for line in finding.lines)

    def _is_judgement_due(self, step: int) -> bool:
        """Often in a window and until its last step has settled, rarely between windows."""
        is_fresh = self.making.noted and step - self.making.noted[-1] <= SETTLE_STEPS + 2 * JUDGE_EVERY
        return step % (JUDGE_EVERY if is_fresh else JUDGE_BETWEEN) == 0 and time.perf_counter() >= self._judge_at

    def _is_census_due(self, step: int) -> bool:
        if self.put_off:
            return self.put_off.is_due()
        last, took = self._last_census
        is_cheap = took < SLOW_SECONDS
        if is_cheap and last != step and any(at <= step for at in self._census_at):
            return True
        if is_cheap and last != step and self.making.is_open:
            if self.lengthening.wants_owner() or self.unseen.wants_look(self.making, step):
                return True
        is_growing = bool(self.suspects or self._found)
        if is_growing and is_cheap and step >= last * LOOK_AGAIN:
            return True
        is_wanted = is_growing or self.keeps_snapshot
        # Without windows looks alone can tell what grows.
        could_note = self.making.is_open or bool(self.making.refused)
        if not is_wanted and not (could_note and self.windows.is_due(step)):
            return False
        share = CENSUS_SHARE if is_wanted else IDLE_CENSUS_SHARE
        return self._has_worked_for((took + self._waited) / share)

    def _has_worked_for(self, seconds: float) -> bool:
        """Whether the program has had so much of the processor since the last census. Only that can be compared with
        what a census takes; asking is slow on some systems, so it is not asked before the clock says it may be."""
        now = time.perf_counter()
        if now < self._ask_at:
            return False
        left = seconds - (time.thread_time() - self._census_ended)
        if 0 < left <= seconds:
            self._ask_at = now + left
            return False
        return True

    def _census(
        self,
        skip: set[int] | None = None,
        edges: set[Any] | None = None,
        has_libraries: bool = False,
        traceback: Any = None,
        has_modules: bool = False,
        has_iterators: bool = False,
        must_be_whole: bool = True,
    ) -> Census:
        own = self.own_ids() | (skip or set())
        with without_collections():
            census = Census(
                own,
                self._sequence[0],
                edges,
                has_libraries,
                traceback,
                self.steps.loaders(),
                has_modules=has_modules,
                has_addresses=self.keeps_snapshot,
                has_iterators=has_iterators or self._iterators.are_followed,
            )
        if must_be_whole and not census.is_whole:
            raise NotWhole
        if not census.is_complete:
            self._limit("the program has more objects than one look follows: some holders may be unnamed")
        return census

    def own_ids(self) -> set[int]:
        """The watch's own objects, which a census passes by."""
        own = (
            self,
            vars(self),
            self.making,
            self.growth,
            self.nodes,
            self.unseen,
            self.lengthening,
            self.steps,
            self.live,
        )
        return {id(one) for one in own}

    def _look(self, step: int, patience: float = PATIENCE) -> None:
        """Names what grows, or puts it off while another thread computes: what is not whole is not judged."""
        began = time.perf_counter()
        try:
            with Moment(patience) as moment:
                self._waited = moment.waited
                self._name(step)
            self._census_at = {at for at in self._census_at if at > step} | self.put_off.make_up(step)
        except NotWhole:
            self.put_off.add(step, time.perf_counter() - began)

    def _name(self, step: int) -> None:
        """Who holds what grows, and how many nodes each holder has."""
        # The processor's time, not the clock's: a busy machine must not change what is found.
        began = time.thread_time()
        census = self._census()
        self._census_ended = time.thread_time()
        self._ask_at = 0.0
        took = self._census_ended - began
        if self._last_census[0] != step:
            self.nodes.take(census, self.making.place_of_key, step)
            self.unseen.take(census, self.making, step)
            self.lengthening.take(census)
        self._last_census = (step, took)
        if self.keeps_snapshot:
            self.snapshot = Snapshot(census, self.making.rows, step)
        groups, unknown = grouped(self.suspects.values(), census, self.excluded.keys())
        unknown_bytes = sum(row.bytes for _, row in unknown)
        if unknown and unknown_bytes * 2 >= TOLERATED_BYTES * max(s.judged_steps for s, _ in unknown):
            if census.is_complete:
                unknown = self._iterators.name(unknown, groups, self._census)
                self._libraries.name(self._name_cycles(unknown, step), groups, self._census)
            else:
                lost = Owner(kinds.VALUE, Hold(None, "inside", "", "structure that is too large to follow"), False)
                for suspect, row in unknown:
                    groups[key_of(lost.hold)].add(suspect, row, lost)
        join_gradients(groups)
        join_spread(groups.values(), self.suspects.values())
        named: list[Finding] = []
        for group in groups.values():
            if group.bytes_per_step >= TOLERATED_BYTES:
                others = self._others(others_of, group) if took < SLOW_SECONDS else []
                finding = finding_of(group, others, step)
                if finding is not None:
                    named.append(finding)
        add_nodes(named, self._nodes_found(step, took < SLOW_SECONDS, census.nodes))
        for found in (
            [unseen_finding(growing, step) for growing in self.unseen.growing()],
            [longer_finding(growing, step) for growing in self.lengthening.growing()],
        ):
            told = {holder for finding in named for holder in finding.holders}
            named += [finding for finding in found if finding.holder not in told]
        self._found = named
        for finding in self._found:
            self.first_told.setdefault(finding.line + finding.kind, step)

    def _nodes_found(self, step: int, is_cheap: bool, counted: dict[Any, Any]) -> list[Finding]:
        growing = self.nodes.growing()
        look = functools.partial(others_of_nodes, before=counted)
        others = [self._others(look, one) if is_cheap else [] for one in growing]
        return [nodes_finding(one, held_by, step) for one, held_by in zip(growing, others)]

    def _others(self, look: Callable[[Any, Any], list[Hold]], growing: Any) -> list[Hold]:
        """Who else holds it, where that can be looked at too: who holds it first is known in any case."""
        try:
            return look(growing, self._census)
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
            self.first_told.setdefault(finding.line + kinds.CYCLE, step)
            self._cycles.append(finding)
        return [(suspect, row) for suspect, row in unknown if row.key not in keys]

    # ---- results ----

    @property
    def findings(self) -> list[Finding]:
        """What grows so far, or, once stopped, the verdicts and notes; the largest first."""
        known = [*self._found, *self._cycles]
        told = {line for finding in known for line in finding.lines}
        known += self.put_off.findings(self.suspects.values(), told, self.excluded.keys())
        found = [finding for finding in known if not self.excluded.has(finding)]
        return sorted(found, key=lambda finding: -finding.bytes_per_step)

    @property
    def verdicts(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.is_verdict and not finding.is_note]

    def ask(self, report: Any) -> None:
        """Calls `report` after a judgement: at once, or, from a signal that came in the middle of one, when it is
        done."""
        if self._is_busy:
            self._asked = report
            return

        def work() -> None:
            self._judge_and_look()
            report()

        self._enter(work, waits=True)

    def look_now(self) -> None:
        """Judges at once, for a report during the run."""
        self._enter(self._judge_and_look, waits=True)

    def take_in(self, excluded: Excluded) -> None:
        """A watch of the program's own begins within this one: what it watches is looked at as closely as a run that begins. One
        that is begun again after a few steps (a block in a loop) goes on: nothing would ever be old enough to be judged."""
        step, before = self.steps.count, self._joined_at
        self._joined_at = step
        self.excluded.include(excluded)
        if before is not None and step - before < LEAST_BLOCK:
            return
        self.growth.warm_up(step)
        self.windows.begin_anew(step)
        self.windows.look_often()
        self._census_at |= {step + after for after in FIRST_CENSUSES}
        self.steps.quiet_until = 0

    def let_go(self, excluded: Excluded) -> list[Finding]:
        """The watch that has joined ends: what is found, judged as at the end of a run. In a block of few steps nothing has become
        old enough for a look of its own."""
        self.excluded.forget(excluded)
        if self.steps.count - (self._joined_at or 0) >= LEAST_BLOCK:
            self.look_now()
        self._finish()
        return self.findings

    def take_snapshot(self, error: BaseException | None = None) -> Snapshot:
        """What is alive now, for the end of a run: the frames that an error went through are still there with it. A run
        that ended well has let its functions' locals go, so what its latest look saw is told."""
        if self.snapshot is None or error is not None:
            traceback = error.__traceback__ if error is not None else None
            self.snapshot = Snapshot(self._census(traceback=traceback, must_be_whole=False), self.making.rows, self.steps.count)
        return self.snapshot

    def _finish(self) -> None:
        enough = {str(place) for place, suspect in self.suspects.items() if suspect.judged_steps >= VERDICT_STEPS}
        for finding in self._found:
            finding.is_verdict = finding.is_verdict or any(line in enough for line in finding.lines)
        if self.steps.rank >= OPTIMIZER or self.steps.epochs > 1 or self.steps.has_learnt:
            return
        for finding in self._found:
            if finding.cause == LONGER[0] or is_one_pass(finding, self.steps.rank == LOADER):
                finding.is_note = True
                finding.is_verdict = False

    def _limit(self, what: str) -> None:
        self.limits.setdefault(what)

    @property
    def cost_seconds(self) -> float:
        """What the watch took: its own time at step boundaries, and what noted steps took longer than others. By medians: the
        first step, and one in which the program waits or evaluates, would be taken for the watch's doing."""
        noted, plain = self._latest[True], self._latest[False]
        slower = _middle(noted) - _middle(plain) if noted and plain else 0.0
        return self.own_seconds + self._durations[True][0] * max(slower, 0.0)

    @property
    def watched_seconds(self) -> float:
        return self.own_seconds + sum(seconds for _, seconds in self._durations.values())


def _middle(values: Iterable[float]) -> float:
    """The median. Not Python's `statistics`: it is imported late, when a program may have a module of that name."""
    ordered = sorted(values)
    half = len(ordered) // 2
    return (ordered[half] + ordered[~half]) / 2
