"""What grows from step to step in a program of Plimsoll's tensors: `LeakWatch`. The books know every block with its line and
step, so growth is exact and costs little (`_GrowthWatch`, in Rust); who holds it is found by walking Python's names
(`_leak_census.py`). Findings, rules and words are those of the watch of PyTorch's programs (`watch`)."""

from __future__ import annotations

import collections
import gc
import json
import sys
import time
import weakref
from typing import Any, Iterable

from ._leak_census import BookPlace, BookRow, Census
from ._plimsoll import Tensor, _block_of, _GrowthWatch
from .watch import _kinds as kinds
from .watch._cycles import describe, held_by_cycles, without_collections
from .watch._decorator import Decorator
from .watch._excluded import Excluded
from .watch._findings import Finding, as_container, object_of
from .watch._growth import SETTLE_STEPS, SUSPECT_STEPS, TOLERATED_BYTES, VERDICT_STEPS, WARM_UP_STEPS, Suspect
from .watch._meant import may_be_meant
from .watch._naming import (
    Copies,
    Iterators,
    Libraries,
    Longer,
    add_nodes,
    copied_finding,
    cycle_finding,
    finding_of,
    grouped,
    join,
    longer_finding,
    nodes_finding,
)
from .watch._nodes import Nodes
from .watch._others import others_of, others_of_nodes
from .watch._errors import is_programs_own
from .watch._render import NOT_COUNTED, finding_lines
from .watch._steps import EXPLICIT, Steps
from .watch._watch import LeakError

# A look for holders beyond this many seconds looks for no further ones.
SLOW_SECONDS = 0.25
# Collections that a watch asks for: each takes long.
MOST_COLLECTIONS = 2


class LeakWatch(Decorator):
    """Watches the steps of a block or function, and says what grows: bytes and objects a step, the line that makes it, what
    kind of memory it is, who holds it, why, and what to do.

    Steps are optimizer steps; without one batches of a loader, calls of `backward()`, or calls of the outermost module. A loop
    with none of them calls `step()` at its end. While the block runs `findings` is what grows so far; after it `verdicts` are
    the leaks. With `error_on_leak` the end of the block raises `plimsoll.watch.LeakError`. `exclude` takes growth that is wanted:
    tensors, lines (`"train.py:17"`) and names on the holder's path (`"replay"`). It watches all devices, or one.

        >>> import plimsoll
        >>> history = []
        >>> with plimsoll.LeakWatch() as watch:
        ...     for _ in range(20):
        ...         history.append(plimsoll.zeros(1024))
        ...         watch.step()
        >>> leak, = watch.verdicts
        >>> leak.bytes_per_step, leak.kind, leak.held_by.split(" -> ")[0]
        (4096.0, 'value', 'global `history`')
    """

    def __init__(self, device: Any = None, *, error_on_leak: bool = False, exclude: Iterable[Any] = ()):
        self.device, self.error_on_leak = device, error_on_leak
        self._excluded = Excluded()
        self._excluded_tensors: list[weakref.ref[Tensor]] = []
        self.exclude(*([exclude] if isinstance(exclude, (str, Tensor)) else exclude))
        self._begin()
        self.is_running = False

    def _begin(self) -> None:
        self._found: list[Finding] = []
        self._cycles: list[Finding] = []
        self._cycle_lines: set[Any] = set()
        self._libraries = Libraries()
        self._iterators = Iterators()
        self._suspects: dict[BookPlace, Suspect] = {}
        # Lines whose memory is made of itself in each step, more every time.
        self._rebuilt: dict[BookPlace, Any] = {}
        self._nodes = Nodes()
        self._collections = 0
        self._is_paused = False
        self._is_complete = True
        self.first_told: dict[str, int] = {}
        self.trouble: str | None = None

    # ---- life ----

    def __enter__(self) -> LeakWatch:
        if self.is_running:
            raise RuntimeError("the watch is on already")
        self._begin()
        self._growth = _GrowthWatch(self.device)
        self._steps = Steps(self._step_ended, _nothing, _nothing, _nothing, sys.modules[__package__])
        self._steps.on_due = self._due
        self._steps.end_step = self._growth.step
        self._steps.start()
        self.is_running = True
        return self

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        self.is_running = False
        self._steps.stop()
        self._growth.attend(False)
        try:
            self._finish()
        except Exception as trouble:
            # What went wrong in the block is worth more.
            if error is None:
                raise
            self.trouble = f"{type(trouble).__name__}: {trouble}"
        if error is None and self.error_on_leak and self.verdicts:
            raise LeakError(self.text())

    def exclude(self, *what: Any) -> None:
        """More growth that is wanted."""
        for one in what:
            if isinstance(one, Tensor):
                self._excluded_tensors.append(weakref.ref(one))
            elif isinstance(one, str):
                self._excluded.add([one])
            else:
                raise TypeError(
                    f"exclude takes tensors, lines ('train.py:17') and names ('replay'), not {type(one).__name__}"
                )

    def step(self) -> None:
        """Ends a step, for loops without optimizer, loader, backward or module; it then tells steps alone."""
        if self.is_running:
            self._steps.tick(EXPLICIT, "step()")

    def pause(self) -> None:
        """Sees nothing until `resume`: neither steps nor tensors."""
        if self.is_running and not self._is_paused:
            self._is_paused = True
            self._steps.stop()
            self._growth.attend(False)

    def resume(self) -> None:
        """Goes on after `pause`."""
        if self.is_running and self._is_paused:
            self._is_paused = False
            self._steps.start()
            self._growth.attend(True)

    @property
    def steps(self) -> int:
        """Steps that have ended."""
        return self._steps.told if hasattr(self, "_steps") else 0

    # ---- judgement ----

    def _step_ended(self, is_new_clock: bool) -> None:
        if not self.is_running or self.trouble:
            return
        try:
            if is_new_clock and self._growth.steps:
                # Another loop: its state is made lazily too.
                self._growth.begin_anew()
            if self._growth.step():
                self._look()
            elif self._found:
                self._let_go()
        except Exception as error:  # the program goes on whatever happens here
            self._stop_by(error)
        self._hasten()

    def _due(self) -> None:
        """The same where the books have ended the step and ask for a look."""
        if not self.is_running:
            return
        try:
            self._look()
        except Exception as error:
            self._stop_by(error)
        self._hasten()

    def _hasten(self) -> None:
        """Has the books alone end steps while nothing is found."""
        self._steps.end_step = None if self._found or self.trouble else self._growth.step

    def _stop_by(self, error: Exception) -> None:
        if is_programs_own(error):
            raise error
        self.trouble = f"the watch stopped at step {self.steps}: {type(error).__name__}: {error}"

    def _read(self) -> None:
        self._suspects, self._rebuilt = {}, {}
        for kept in self._growth.kept():
            place = BookPlace(kept.file or "", kept.line, kept.function, kept.phase == "backward")
            if kept.rebuilt is not None:
                self._rebuilt[place] = kept
                continue
            rows = [BookRow(key, count, step, place) for key, count, step in kept.blocks]
            known = self._suspects.get(place)
            if known is not None:
                # Several operations of one line.
                rows += known.rows  # type: ignore[arg-type]
            judged = max(kept.judged_steps, known.judged_steps if known is not None else 0)
            first = min(row.step for row in rows) if rows else 0
            self._suspects[place] = Suspect(place, rows, judged, first)  # type: ignore[arg-type]

    def _let_go(self) -> None:
        """Forgets findings of lines that no longer grow."""
        self._read()
        held = {str(place) for place in (*self._suspects, *self._rebuilt)}
        self._found = [
            finding
            for finding in self._found
            if finding.kind == kinds.NODES or any(line in held for line in finding.lines)
        ]

    def _census(
        self,
        skip: set[int] | None = None,
        edges: set[Any] | None = None,
        has_libraries: bool = False,
        has_iterators: bool = False,
    ) -> Census:
        own = {id(self), id(vars(self)), id(self._steps), id(vars(self._steps))} | (skip or set())
        has_iterators = has_iterators or self._iterators.are_followed
        with without_collections():
            census = Census(self._growth, own, edges, has_libraries, self._steps.loaders(), has_iterators)
        self._is_complete = self._is_complete and census.is_complete
        return census

    def _look(self) -> None:
        """Who holds what grows, and how many nodes each holder has."""
        # The processor's time, not the clock's: a busy machine must not change what is found.
        began, step = time.thread_time(), self._growth.steps
        self._read()
        census = self._census()
        self._nodes.take(census, lambda key: census.roots[key].place if key in census.roots else None, step)
        took = time.thread_time() - began
        groups, unknown = grouped(self._suspects.values(), census, self._excluded_keys())
        unknown_bytes = sum(row.bytes for _, row in unknown)
        if unknown and unknown_bytes * 2 >= TOLERATED_BYTES * max(suspect.judged_steps for suspect, _ in unknown):
            unknown = self._iterators.name(unknown, groups, self._census)
            self._libraries.name(self._name_cycles(unknown, step), groups, self._census)
        join(groups, self._suspects.values())
        self._found = []
        for group in groups.values():
            if group.bytes_per_step >= TOLERATED_BYTES:
                finding = finding_of(group, others_of(group, self._census) if took < SLOW_SECONDS else [], step)
                if finding is not None:
                    self._found.append(finding)
        nodes = []
        for growing in self._nodes.growing():
            others = others_of_nodes(growing, self._census, census.nodes) if took < SLOW_SECONDS else []
            nodes.append(nodes_finding(growing, others, step))
        add_nodes(self._found, nodes)
        holders = {finding.holder for finding in self._found}
        self._found += [finding for finding in self._rebuilt_found(census, step) if finding.holder not in holders]
        for finding in self._found:
            self.first_told.setdefault(finding.line + finding.kind, step)
        took = time.thread_time() - began
        # Only what is slow must come rarely: a line that begins to grow is looked at at once.
        self._growth.named(took if took > SLOW_SECONDS else 0.0)

    def _rebuilt_found(self, census: Census, step: int) -> list[Finding]:
        found = []
        for place, kept in self._rebuilt.items():
            found_owners = [census.owners[key] for key, _, _ in kept.blocks if key in census.owners]
            if not found_owners:
                continue
            # Entries of one container share a hold: the one that has most of them is told.
            most = collections.Counter(id(owner.hold) for owner in found_owners).most_common(1)[0][0]
            owner = next(owner for owner in found_owners if id(owner.hold) == most)
            is_steady = kept.judged_steps >= VERDICT_STEPS
            each, objects, is_copied = kept.rebuilt
            if is_copied:
                owner = owner._replace(hold=as_container(owner.hold))
                found.append(copied_finding(Copies(place, owner, each, objects, is_steady), step))
            else:
                found.append(longer_finding(Longer(place, owner, each, is_steady), step))
        return found

    def _excluded_keys(self) -> set[Any]:
        living = (weak() for weak in self._excluded_tensors)
        return {_block_of(tensor) for tensor in living if tensor is not None}

    def _name_cycles(self, unknown: list[tuple[Suspect, Any]], step: int) -> list[tuple[Suspect, Any]]:
        """Those that no objects hold that refer to each other. What one look finds is told together, and its lines are known from
        then on."""
        unknown = [(suspect, row) for suspect, row in unknown if suspect.place not in self._cycle_lines]
        if not unknown or self._collections >= MOST_COLLECTIONS:
            return unknown
        self._collections += 1
        # A program that has switched the collector off wants none to come.
        look = self._freed_by_collector if gc.isenabled() else lambda rows: held_by_cycles(rows, _key_of)
        rows, said = look([row for _, row in unknown])
        keys = {(row.key, row.step) for row in rows}
        held = [(suspect, row) for suspect, row in unknown if (row.key, row.step) in keys]
        finding, lines = cycle_finding(held, said, step)
        if finding is not None:
            self._cycle_lines |= lines
            self.first_told.setdefault(finding.line + kinds.CYCLE, step)
            self._cycles.append(finding)
        return [(suspect, row) for suspect, row in unknown if (row.key, row.step) not in keys]

    def _freed_by_collector(self, rows: list[BookRow]) -> tuple[list[BookRow], str]:
        said = describe({row.key for row in rows}, _key_of)
        gc.collect()
        self._growth.look()
        living = {(key, made) for line in self._growth.kept() for key, _, made in line.blocks}
        return [row for row in rows if (row.key, row.step) not in living], said

    def _finish(self) -> None:
        self._let_go()
        judged = (*self._suspects.items(), *self._rebuilt.items())
        enough = {str(place) for place, grows in judged if grows.judged_steps >= VERDICT_STEPS}
        for finding in self._found:
            finding.is_verdict = finding.is_verdict or any(line in enough for line in finding.lines)
            if may_be_meant(finding, self._steps):
                finding.is_note, finding.is_verdict = True, False

    # ---- results ----

    @property
    def findings(self) -> list[Finding]:
        """What grows so far, the largest first; after the block the verdicts and the notes."""
        found = [finding for finding in (*self._found, *self._cycles) if not self._excluded.has(finding)]
        return sorted(found, key=lambda finding: -finding.bytes_per_step)

    @property
    def verdicts(self) -> list[Finding]:
        """The findings that count: what had grown for long enough when the block ended."""
        return [finding for finding in self.findings if finding.is_verdict and not finding.is_note]

    def text(self) -> str:
        """The report, 80 columns wide."""
        is_final, findings, leaks = not self.is_running, self.findings, self.verdicts
        counted_by = self._steps.counted_by if hasattr(self, "_steps") else "nothing"
        count = f"{len(leaks)} finding{'' if len(leaks) == 1 else 's'}" if is_final else f"{len(findings)} growing so far"
        lines = [f"watch: {self.steps} steps, counted by {counted_by}; {count}"]
        for finding in findings:
            verb = "growing so far:" if not is_final else "grows" if finding in leaks else "note: grew"
            lines += finding_lines(finding, verb)
            if finding.is_note:
                lines += [f"    note     {NOT_COUNTED}"]
        least = WARM_UP_STEPS + SUSPECT_STEPS + SETTLE_STEPS
        if is_final and self.steps < least:
            lines += [f"  note: too few steps to judge; {least} are needed, or mark them with `step()`"]
        if not self._is_complete:
            lines += ["  note: the program has more objects than one look follows"]
        if self.trouble:
            lines += [f"  note: {self.trouble}"]
        return "\n".join(lines) + "\n"

    def json(self) -> str:
        """The report for programs."""
        whole = {
            "format": "plimsoll-leak-watch",
            "version": 1,
            "is_final": not self.is_running,
            "steps": self.steps,
            "findings": [object_of(finding, self.first_told) for finding in self.findings],
            "trouble": self.trouble,
        }
        return json.dumps(whole, indent=2) + "\n"


def _key_of(value: Any) -> Any:
    """The block of a tensor, and None of what is no tensor."""
    return _block_of(value) if issubclass(type(value), Tensor) else None


def _nothing(*_: Any) -> None:
    pass
