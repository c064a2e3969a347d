"""One watched run: at the end of each step it opens and closes windows, judges what stays, and has it looked at who holds it.
The parts decide (`_making.py`, `_growth.py`, `_looks.py`); this is in which order. It imports PyTorch; `__init__.py` has
the public names."""

from __future__ import annotations

import os
import threading
import time
import weakref
from typing import Any, Callable

from torch._C import _get_tracing_state

from . import _kinds as kinds
from ._cost import StepTimes
from ._errors import is_programs_own, let_go_of_frames
from ._excluded import Excluded
from ._findings import REBUILT, Finding
from ._growth import SETTLE_STEPS, VERDICT_STEPS, WARM_UP_STEPS, Growth, Suspect
from ._levels import Levels
from ._looks import CENSUS_SHARE, FIRST_CENSUSES, SLOW_SECONDS, Looks
from ._making import WINDOW_STEPS, Making
from ._meant import may_be_meant
from ._places import Place, follow_program
from ._out_of_memory import Shortages
from ._phases import Phase, Phases
from ._steps import Steps
from ._undisturbed import PATIENCE, Moment
from ._windows import Windows

# Steps between two judgements, in and after windows and between them.
JUDGE_EVERY = 2
JUDGE_BETWEEN = 16
# A judgement of fewer rows is not slow: asking for the processor's time can cost more than it.
MANY_ROWS = 10_000
# Steps of the shortest block of the program's own that is watched like a run: it has a window that can be judged.
LEAST_BLOCK = WARM_UP_STEPS + WINDOW_STEPS + SETTLE_STEPS
# How long the last look of a run waits for other threads, where one was put off.
LAST_PATIENCE = 0.5
# Looks that errors of the program's have ended before it is told.
MOST_INTERRUPTIONS = 3


class Session:
    """What is known of one run. `start` and `stop` bracket it; `findings` can be read at any time."""

    def __init__(self) -> None:
        self.making = Making()
        self.growth = Growth()
        self.levels = Levels()
        self.phases: Phases | None = None
        self.steps = Steps(self._step_ended, self._epoch_ended, self._pass_ended, self._pass_begun)
        self.suspects: dict[Place | None, Suspect] = {}
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
        self.own_seconds = 0.0
        self.windows = Windows(self.making)
        self.looks = Looks(self.making, self.steps, self.windows, self._limit)
        self.looks.pass_by([self, vars(self), self.growth])
        self._times = StepTimes()
        # How many looks the program's own errors have ended, and the clock before which none is taken again.
        self._interruptions = 0
        self._rest_until = 0.0
        # The step at which a watch of the program's own joined last.
        self._joined_at: int | None = None
        self._lock = threading.RLock()
        self._pid = os.getpid()
        self._is_busy = False
        self._has_given_up = False
        self._asked: Any = None
        # Which thread has ended the latest step.
        self._clock_thread = 0
        self._judge_at = 0.0

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
            self.looks.pass_by([self.live])
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
        # Whoever asks a tensor for its shape while `torch.jit.trace` records writes into what is recorded.
        if _get_tracing_state() is not None:
            return
        if not self.is_running or self._has_given_up or not self._lock.acquire(blocking=waits):
            return
        was_busy, self._is_busy = self._is_busy, True
        began = time.perf_counter()
        try:
            work()
        except BaseException as error:
            if not isinstance(error, Exception) or is_programs_own(error):
                self._interrupted(began)
                let_go_of_frames(error)
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
                self._times.step_ended(self.steps.count, time.perf_counter(), was_noting)
            self._tick(is_new_clock)
            asked, self._asked = self._asked, None
            if asked is not None:
                asked()

        was_noting = self.making.is_noting
        try:
            self._enter(work)
        finally:
            self._times.step_begins(time.perf_counter())

    def _tick(self, is_new_clock: bool) -> None:
        step = self.steps.count
        self._clock_thread = threading.get_ident()
        self.looks.step_ended()
        self.making.tick(step)
        self.shortages.follow_device()
        if is_new_clock and step > 1:
            # Another loop: its state is made lazily too.
            self.growth.warm_up(step)
            self.windows.begin_anew(step)
        has_looked = False
        with self.making.paused():
            if time.perf_counter() >= self._rest_until:
                if self._is_judgement_due(step):
                    self._judge(step)
                has_looked = self.looks.is_due(step, bool(self.suspects))
                if has_looked:
                    self._look(step)
            if self.on_findings is not None:
                self.on_findings(step)
            if self.live is not None:
                self.live.step_ended(step, lambda: self.looks.census(has_modules=True, must_be_whole=False))
        if has_looked and self.windows.are_single_steps and self.looks.copied.wants_window():
            self.windows.ask(step)
        is_open = self.windows.tick(step)
        if self.making.trouble:
            # Also where it was within a window, and the next one could be opened.
            self._limit(self.making.trouble)
        elif not is_open and not self.making.is_elsewhere:
            self._limit(self.making.refused)
        if self.windows.alarmed:
            # Small results may hold large graphs: count nodes now and after the window.
            self.looks.come_also_after(step, (1, WINDOW_STEPS))
        self._be_quiet(step)

    def _be_quiet(self, step: int) -> None:
        """Where nothing is due for some time, steps are only counted until something is."""
        if self.making.rows or self.making.is_open or self.suspects or self.looks.found or self.on_findings is not None:
            return
        if self.looks.put_off:
            return
        if self.live is not None and self.live.is_looked_at:
            return
        if step > self.looks.last_due_at and not self.looks.keeps_snapshot:
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

    def _look(self, step: int, patience: float = PATIENCE) -> None:
        self.looks.take(step, self.suspects, self.excluded, patience)

    def _last_look(self) -> None:
        """At the end of a run, where one was put off and nothing is known: what names lead to by then can still be told."""
        if (self.looks.put_off or self._interruptions) and not self.looks.found:
            with self.making.paused():
                self._look(self.steps.count, LAST_PATIENCE)
            if not self.looks.found:
                # What was held while the program ran may be gone by now.
                self.looks.put_off.reopen()

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
            self.looks.found = [finding for finding in self.looks.found if self._is_still_held(finding)]

    def _is_still_held(self, finding: Finding) -> bool:
        held = {str(place) for place in self.suspects}
        is_of_censuses = finding.kind == kinds.NODES or finding.cause in REBUILT or not finding.lines
        return is_of_censuses or any(line in held for line in finding.lines)

    def _is_judgement_due(self, step: int) -> bool:
        """Often in a window and until its last step has settled, rarely between windows."""
        is_fresh = self.making.noted and step - self.making.noted[-1] <= SETTLE_STEPS + 2 * JUDGE_EVERY
        return step % (JUDGE_EVERY if is_fresh else JUDGE_BETWEEN) == 0 and time.perf_counter() >= self._judge_at

    # ---- results ----

    @property
    def findings(self) -> list[Finding]:
        """What grows so far, or, once stopped, the verdicts and notes; the largest first."""
        known = [*self.looks.found, *self.looks.cycles]
        told = {line for finding in known for line in finding.lines}
        known += self.looks.put_off.findings(self.suspects.values(), told, self.excluded.keys())
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
        self.looks.come_also_after(step, FIRST_CENSUSES)
        self.steps.quiet_until = 0

    def let_go(self, excluded: Excluded) -> list[Finding]:
        """The watch that has joined ends: what is found, judged as at the end of a run. In a block of few steps nothing has become
        old enough for a look of its own."""
        self.excluded.forget(excluded)
        if self.steps.count - (self._joined_at or 0) >= LEAST_BLOCK:
            self.look_now()
        self._finish()
        return self.findings

    def _finish(self) -> None:
        enough = {str(place) for place, suspect in self.suspects.items() if suspect.judged_steps >= VERDICT_STEPS}
        for finding in self.looks.found:
            finding.is_verdict = finding.is_verdict or any(line in enough for line in finding.lines)
        for finding in self.looks.found:
            if may_be_meant(finding, self.steps):
                finding.is_note = True
                finding.is_verdict = False

    def _limit(self, what: str) -> None:
        self.limits.setdefault(what)

    @property
    def cost_seconds(self) -> float:
        """What the watch took: its own time at step boundaries, and what noted steps took longer than others."""
        return self.own_seconds + self._times.noting_seconds

    @property
    def watched_seconds(self) -> float:
        return self.own_seconds + self._times.program_seconds
