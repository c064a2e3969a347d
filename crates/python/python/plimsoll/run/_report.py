"""The report of a run as text of 80 columns: each device's peak by kind, module and line, what is cached, what is still
held and by whom, and the findings. It only words what `_session.py` read."""

from __future__ import annotations

import os
import textwrap
from typing import Any

from .._plimsoll import (
    max_memory_allocated,
    max_memory_reserved,
    memory_allocated,
    memory_by_line,
    memory_external,
    memory_report,
    memory_reserved,
    memory_stats,
)

WIDTH = 80
# Characters of a place in a row, as in the runtime's own tables, and places named at most.
PLACE = 34
MOST_LINES = 12
# Holders named for one device; the rest is one row.
MOST_HOLDERS = 8


def size(count: float) -> str:
    """Bytes for people, as the runtime's own tables write them."""
    if count < 1024:
        return f"{count:.0f} B"
    for unit in ("KiB", "MiB", "GiB"):
        count /= 1024
        if count < 1024 or unit == "GiB":
            return f"{count:.2f} {unit}"
    raise AssertionError("unreachable")


class DeviceFigures:
    """What a device's books said when the program ended."""

    def __init__(self, device: Any):
        self.device = device
        self.peak, self.peak_reserved = max_memory_allocated(device), max_memory_reserved(device)
        self.allocated, self.reserved = memory_allocated(device), memory_reserved(device)
        self.external = memory_external(device)
        stats = memory_stats(device)
        self.retries, self.failures = stats.get("num_alloc_retries", 0), stats.get("num_ooms", 0)
        self.segments = stats.get("segment.all.current", 0)
        # The runtime's own table; its lines are whole paths, and are written anew here.
        self.table = memory_report(device).partition("\nby line")[0].rstrip("\n").split("\n")
        self.lines = memory_by_line(device, peak=True)


def text(session: Any) -> str:
    lines = [_rule(f"plimsoll run: {_name(session)}"), *_ending(session)]
    if not session.figures:
        lines.append("The program made no tensors.")
    for figures in session.figures:
        lines += ["", *figures.table, "", *_by_line(figures), "", *_cached(figures), *_held(session, figures)]
    lines += _findings(session)
    for trouble in session.trouble:
        lines += _wrapped(trouble)
    for what, path in (("snapshot", session.options.snapshot), ("page", session.options.html)):
        if path and session.figures:
            lines += ["", f"{what}: {path}"]
    return "\n".join(lines) + "\n"


def _rule(title: str) -> str:
    return f"── {title} ".ljust(WIDTH, "─")[:WIDTH]


def _name(session: Any) -> str:
    options = session.options
    return f"-m {options.module}" if options.module else os.path.basename(options.program[0])


def _ending(session: Any) -> list[str]:
    steps = session.steps.count
    told = f", {steps} step{'' if steps == 1 else 's'} counted by {session.steps.counted_by}" if steps else ""
    took = f"{session.seconds:.1f} s{told}"
    if session.stopped_at:
        return _wrapped(f"A dry run of {took}. It ended at {session.stopped_at}: the peaks are those until there.")
    if session.options.dry:
        return _wrapped(f"A dry run of {took}, to the program's end.")
    error = session.error
    if error is None or isinstance(error, SystemExit):
        return [f"It ended after {took}."]
    return [f"It ended by {type(error).__name__} after {took}."]


def _by_line(figures: DeviceFigures) -> list[str]:
    """The peak by the program's lines, paths as one would type them here."""
    places: dict[tuple[str, int, str], list[dict[str, Any]]] = {}
    for row in figures.lines:
        places.setdefault((row["file"] or "", row["line"] or 0, row["function"] or ""), []).append(row)
    sums = sorted(((sum(row["bytes"] for row in rows), place) for place, rows in places.items()), reverse=True)
    lines = [f"{'by line':<{PLACE}} {'bytes':>11} {'share':>7}  operation, kind"]
    for total, place in sums[:MOST_LINES]:
        first, *more = places[place]
        what = f"{first['operation']}, {first['kind']}" + (f" +{len(more)}" if more else "")
        lines.append(_row(_place_name(*place), total, figures.peak, what))
    rest = sums[MOST_LINES:]
    if rest:
        lines.append(_row(f"{len(rest)} more lines", sum(total for total, _ in rest), figures.peak, ""))
    return lines


def _row(name: str, count: int, whole: int, what: str) -> str:
    return f"{name:<{PLACE}} {size(count):>11} {100 * count / max(whole, 1):>6.1f}%  {what}"[:WIDTH].rstrip()


def _place_name(file: str, line: int, function: str) -> str:
    """File, line and function; of a long name the end, which tells files apart."""
    name = f"{_short(file)}:{line}" if file else "unknown"
    if function and len(name) + len(function) + 3 <= PLACE:
        name += f" ({function})"
    return name if len(name) <= PLACE else "…" + name[1 - PLACE :]


def _cached(figures: DeviceFigures) -> list[str]:
    cached = figures.reserved - figures.allocated
    said = f"Cached by the allocator at the end: {size(cached)} of {size(figures.reserved)} reserved"
    said += f" in {figures.segments} segment{'' if figures.segments == 1 else 's'}."
    if figures.retries:
        said += f" {figures.retries} allocations had to give cached memory back first."
    if figures.failures:
        said += f" It ran out of memory {figures.failures} times."
    if figures.external:
        said += f" Beside it {size(figures.external)} of other libraries' memory is in tensors."
    return _wrapped(said)


def _held(session: Any, figures: DeviceFigures) -> list[str]:
    rows = [row for row in session.held if row.device == str(figures.device)]
    if not figures.allocated:
        return ["Nothing is held any more."]
    lines = ["", f"{'still held at the end, by':<45} {'bytes':>11} {'tensors':>8}"]
    for row in rows[:MOST_HOLDERS]:
        count = str(row.tensors) if row.tensors else ""
        lines.append(f"{row.name[:45]:<45} {size(row.bytes):>11} {count:>8}".rstrip())
    rest = rows[MOST_HOLDERS:]
    if rest:
        total, count = sum(row.bytes for row in rest), sum(row.tensors for row in rest)
        lines.append(f"{f'{len(rest)} more':<45} {size(total):>11} {count:>8}")
    return lines


def _findings(session: Any) -> list[str]:
    found = session.findings
    if not found:
        return ["", "No findings."] if session.figures else []
    lines = ["", f"{len(found)} finding{'' if len(found) == 1 else 's'}"]
    for number, finding in enumerate(found, 1):
        site = finding.get("site")
        place = f" at {_short(site['file'])}:{site['line']}" if site else ""
        lines += _wrapped(f"{number}. {finding['kind']}: {finding['cause']}{place}", 2, 5)
        lines += _wrapped(finding["message"], 5, 5)
        if finding.get("held_by"):
            lines += _wrapped(f"Held by {finding['held_by']}.", 5, 5)
        lines += _wrapped(f"Remedy: {finding['advice']}", 5, 5)
    return lines


def _short(file: str) -> str:
    """A path as one would type it here."""
    try:
        near = os.path.relpath(file)
    except ValueError:  # another drive
        return file
    return near if len(near) < len(file) else file


def _wrapped(said: str, first: int = 0, later: int = 0) -> list[str]:
    return textwrap.wrap(said, WIDTH, initial_indent=" " * first, subsequent_indent=" " * later, break_long_words=False)
