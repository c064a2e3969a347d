"""A run's findings as text for people and as JSON for programs. It computes nothing."""

from __future__ import annotations

import json
import sys
import textwrap
import types
from typing import Any

from ._attributes import names_in
from ._findings import Finding, object_of
from ._growth import SETTLE_STEPS, SUSPECT_STEPS, WARM_UP_STEPS
from ._kinds import NODES
from ._levels import meaning

WIDTH = 80
# What is said of a finding that is a note.
NOT_COUNTED = "bounded, or gathered in one pass: not counted as a leak"
# Steps that a run must have to be judged.
LEAST_STEPS = WARM_UP_STEPS + SUSPECT_STEPS + SETTLE_STEPS


def size(count: float) -> str:
    """Bytes for people: `75.0 KiB`."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            return f"{count:.0f} B" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    raise AssertionError("unreachable")


def amount(finding: Finding) -> str:
    """How much it grows: `16.1 KiB a step (3 storages)`."""
    count = _count(finding.objects_per_step)
    objects = f"{count} {'node' if finding.kind == NODES else 'storage'}{'' if count == '1' else 's'}"
    said = f"{size(finding.bytes_per_step)} a step ({objects})"
    if finding.nodes_per_step:
        nodes = f"{_count(finding.nodes_per_step)} graph node{'' if finding.nodes_per_step == 1 else 's'}"
        said += f", and {size(finding.node_bytes_per_step)} on the host ({nodes})"
    return said


def _count(number: float) -> str:
    """`0.25`, `3.2` or `4,720`."""
    return f"{number:.3g}" if number < 100 else f"{number:,.0f}"


def finding_lines(finding: Finding, verdict: str) -> list[str]:
    """One finding, 80 columns wide."""
    others = f" (and {', '.join(finding.lines[1:])})" if len(finding.lines) > 1 else ""
    rows = [
        ("line", finding.line + others),
        ("kind", finding.kind),
        *([("made in", finding.phase)] if finding.phase else []),
        ("held by", finding.held_by),
        *(("and by", words) for words, _ in finding.also_held_by),
        ("cause", finding.cause),
        ("remedy", finding.remedy),
    ]
    lines = [f"  {verdict} {amount(finding)}"]
    for name, value in rows:
        lines += textwrap.wrap(
            value, WIDTH, initial_indent=f"    {name:8} ", subsequent_indent=" " * 13, break_long_words=False
        )
    return lines


def notes(session: Any, is_final: bool) -> list[str]:
    """What is not blamed on a line, and what could not be seen."""
    said = []
    if is_final and is_too_short(session):
        said.append(f"too few steps to judge; {LEAST_STEPS} are needed, or mark them with `watch.step()`")
    said += session.limits
    if session.looks.put_off.words:
        said.append(session.looks.put_off.words)
    if session.making.full:
        said.append("so many storages were alive at once that not all were noted")
    if not session.steps.count and _names_plimsoll():
        said.append("it watches PyTorch's tensors; those of Plimsoll are watched by `plimsoll.LeakWatch()`")
    each = session.levels.resident.growth_per_step()
    told = sum(finding.bytes_per_step + finding.node_bytes_per_step for finding in session.findings)
    if each > 2 * told and not session.looks.put_off:
        holes = session.levels.holes.growth_per_step()
        known = f"tensors explain {size(told)}"
        if holes:
            known += f" and holes in its heap {size(holes)}: what is kept lies between what was freed (fragmentation)"
        rest = "made in steps that were not noted, or not tensors (Python objects, a library, fragmentation)"
        # What the optimizers of other threads leave behind is counted by nobody.
        rest = f"made in other threads that learn, or {rest}" if session.steps.learns_elsewhere else rest
        # Of two levels that are read one after the other a part stays over in any case.
        is_all_known = holes and each - told - holes < each / 4
        left = "" if is_all_known else f": the rest is {rest}"
        said.append(f"the process grows by {size(each)} a step, of which {known}{left}")
    return said


def _names_plimsoll() -> bool:
    """Whether the program has imported Plimsoll, and more of it than the watch: `python -m plimsoll.watch` does so by itself."""
    modules = (value for value in list(names_in(sys.modules.get("__main__")).values()) if type(value) is types.ModuleType)
    return any("LeakWatch" in names_in(module) for module in modules if _is_plimsoll(module))


def _is_plimsoll(module: types.ModuleType) -> bool:
    return str(names_in(module).get("__name__")).partition(".")[0] == "plimsoll"


def levels_of(session: Any) -> dict[str, dict[str, float]]:
    """Which levels of memory grow. What of the process is not tensors is a note."""
    return session.levels.growing()  # type: ignore[no-any-return]


def _levels(session: Any) -> list[str]:
    lines = []
    for place, of in levels_of(session).items():
        each = ", ".join(f"{name} by {size(count)}" for name, count in of.items())
        said = f"{place} grows each step ({each}): {meaning(set(of))}"
        lines += textwrap.wrap(said, WIDTH, initial_indent="  ", subsequent_indent="    ")
    return lines


def _phases(session: Any) -> list[str]:
    phases = session.phase_table
    lines = ["  phases of a step: change within it, and growth a step at its end"] if phases else []
    for phase in phases:
        change, growth = (f"{'-' if one < 0 else '+'}{size(abs(one))}" for one in phase[1:])
        lines += [f"    {phase.name:15} {change:>12} {growth:>12}"]
    return lines


def _fillings(session: Any) -> list[str]:
    lines = ["  out of memory; what was alive, by holder:"] if session.fillings else []
    for filling in session.fillings:
        made = f", made at {filling.line}" if filling.line else ""
        said = f"{filling.kind} ({filling.storages}), held by {filling.held_by}{made}"
        lines += textwrap.wrap(
            said, WIDTH, initial_indent=f"  {size(filling.bytes):>11}  ", subsequent_indent=" " * 15,
            break_long_words=False,
        )  # fmt: skip
    return lines


def shortage_text(session: Any) -> str:
    """What is alive when memory runs out, alone."""
    return "\n".join([f"watch: memory ran out at step {session.steps.count}", *_fillings(session)]) + "\n"


def is_too_short(session: Any) -> bool:
    """Whether a run had too few steps to be judged."""
    return bool(session.steps.told < LEAST_STEPS)


def text(session: Any, is_final: bool = True) -> str:
    """80 columns."""
    steps, counted_by = session.steps.told, session.steps.counted_by
    epochs = f" in {session.steps.epochs} epochs" if session.steps.epochs else ""
    findings = session.findings
    leaks = [finding for finding in findings if finding.is_verdict and not finding.is_note]
    rest = [finding for finding in findings if finding not in leaks]
    if is_final:
        outcome = f"{len(leaks)} finding{'s' if len(leaks) != 1 else ''}"
    else:
        outcome = f"{len(findings)} growing so far"
    lines = [f"watch: {steps} steps{epochs}, counted by {counted_by}; {outcome}"]
    for finding in leaks:
        lines += finding_lines(finding, "grows" if is_final else "growing so far:")
    for finding in rest:
        lines += finding_lines(finding, "note: grew" if is_final else "growing so far:")
        if finding.is_note:
            lines += [f"    note     {NOT_COUNTED}"]
    lines += _levels(session) + _phases(session)
    lines += _fillings(session)
    for note in notes(session, is_final):
        lines += textwrap.wrap(note, WIDTH, initial_indent="  note: ", subsequent_indent="    ")
    share = session.cost_seconds / session.watched_seconds if session.watched_seconds else 0.0
    lines += [f"  the watch took {session.cost_seconds:.2f} s, {share:.0%} of the time (windows of a dispatch mode)"]
    return "\n".join(lines) + "\n"


def as_json(session: Any, is_final: bool = True) -> str:
    """One object."""
    whole = {
        "format": "plimsoll-watch",
        "version": 1,
        "is_final": is_final,
        "steps": session.steps.told,
        "epochs": session.steps.epochs,
        "counted_by": session.steps.counted_by,
        "way": "dispatch windows",
        "findings": [_object(finding, session) for finding in session.findings],
        "out_of_memory": [filling._asdict() for filling in session.fillings],
        "levels_growing": levels_of(session),
        "phases": [phase._asdict() for phase in session.phase_table],
        "notes": notes(session, is_final),
        "cost_seconds": round(session.cost_seconds, 4),
        "watched_seconds": round(session.watched_seconds, 4),
        "rows": len(session.making.rows),
    }
    return json.dumps(whole, indent=2) + "\n"


def _object(finding: Finding, session: Any) -> dict[str, Any]:
    return {
        **object_of(finding, session.looks.first_told),
        "also_held_by": [{"held_by": words, "path": path} for words, path in finding.also_held_by],
        "phase": finding.phase,
        "seen_at_step": finding.seen_at_step,
    }
