"""Leaks between two points of a program rather than from step to step: the first check is the baseline, later ones
tell who holds more than then. For loops the watch (`_session.py`) judges better: it needs no point at which
everything should be gone."""

from __future__ import annotations

import collections
import gc
import warnings
from typing import Any, Iterable, NamedTuple

from ._excluded import Excluded
from ._watch import LeakError


# Seconds for which a check waits for a moment at which no other thread computes.
PATIENCE = 1.0


class LeakWarning(UserWarning):
    """What a check found, as a warning."""


class Kept(NamedTuple):
    """What one holder has more than at the baseline."""

    bytes: int
    storages: int
    shapes: list[tuple[int, ...]]
    kind: str
    line: str | None
    held_by: str

    def __str__(self) -> str:
        from ._render import size

        made = f", made at {self.line}" if self.line else ""
        shapes = ", ".join(str(shape) for shape in self.shapes)
        return f"{size(self.bytes)} more ({self.storages} storages; {shapes}), {self.kind}, held by {self.held_by}{made}"


class LeakChecker:
    """Tells tensors that are still held and were not at the first check.

    The first `check_leaks()` sets the baseline. Later ones give what each holder has more than then, and warn with
    `LeakWarning`, or raise `LeakError` if `error_on_leak`. `exclude` takes what is not to be reported: tensors, lines
    (`"train.py:17"`) and names (`"replay"`). From the baseline until `close()`, or the end of a `with` block, the line
    that makes each storage is noted, which makes operations several times slower; without `lines` it is not.
    """

    def __init__(self, error_on_leak: bool = False, *, exclude: Iterable[Any] = (), lines: bool = True):
        self.error_on_leak = error_on_leak
        self._excluded = Excluded(exclude)
        self._with_lines = lines
        self._making: Any = None
        self._baseline: collections.Counter[Any] | None = None
        # The storages of each holder then.
        self._storages: dict[Any, int] = {}

    def exclude(self, *what: Any) -> None:
        """More that is not to be reported."""
        self._excluded.add(what)

    def check_leaks(self) -> list[Kept]:
        """The holders that have more than at the baseline, the largest first; none at the first call."""
        from ._making import Making

        if self._making is None:
            self._making = Making()
        self._making.is_noting = False
        # Cycles are not held by anyone; what is left after a collection is.
        gc.collect()
        now, owners, census = self._look()
        found: list[Kept] = []
        if not census.is_whole:
            said = "nothing was compared: other threads were computing all the time, and gradients cannot be read meanwhile"
            warnings.warn(said, LeakWarning, stacklevel=2)
        elif self._baseline is None:
            self._baseline = now
            self._storages = {edge: len(keys) for edge, keys in owners.items()}
        else:
            found = self._more(self._baseline, now, owners, census)
        if self._with_lines:
            self._making.open()
        if found:
            said = "tensors are held that were not at the first check\n" + "\n".join(f"  {kept}" for kept in found)
            if self.error_on_leak:
                raise LeakError(said)
            warnings.warn(said, LeakWarning, stacklevel=2)
        return found

    def _look(self) -> tuple[collections.Counter[Any], dict[Any, list[int]], Any]:
        from ._census import Census
        from ._findings import holder_of
        from ._naming import key_of

        census = Census({id(self), id(vars(self)), id(self._making)}, patience=PATIENCE)
        excluded = self._excluded.keys()
        now: collections.Counter[Any] = collections.Counter()
        owners: dict[Any, list[int]] = collections.defaultdict(list)
        for key, owner in census.owners.items():
            if key not in excluded:
                edge = key_of(holder_of(owner.hold))
                now[edge] += census.bytes_of[key]
                owners[edge].append(key)
        return now, owners, census

    def _more(self, before: Any, now: Any, owners: dict[Any, list[int]], census: Any) -> list[Kept]:
        from ._findings import steps_of, words_of

        self._making.prune()
        rows = self._making.rows
        found = []
        for edge, count in now.items():
            more = count - before[edge]
            if more <= 0:
                continue
            new = [key for key in owners[edge] if key in rows] or owners[edge]
            owner = census.owners[max(new, key=census.bytes_of.__getitem__)]
            lines = collections.Counter(str(rows[key].place) for key in new if key in rows)
            line = lines.most_common(1)[0][0] if lines else None
            if not self._excluded.names(list(lines), steps_of(owner.hold)):
                shapes = list(dict.fromkeys(census.shapes[key] for key in new))[:3]
                storages = max(len(owners[edge]) - self._storages.get(edge, 0), 1)
                found.append(Kept(more, storages, shapes, owner.kind, line, words_of(owner.hold)))
        return sorted(found, key=lambda kept: -kept.bytes)

    def close(self) -> None:
        """Ends the noting of lines, in the thread in which it began."""
        if self._making is not None:
            self._making.close()

    def __enter__(self) -> LeakChecker:
        self.check_leaks()
        return self

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        self.close()


_checker: LeakChecker | None = None


def check_leaks(error_on_leak: bool = False) -> list[Kept]:
    """The same with one checker for the whole program, which notes no lines: the first call sets the baseline."""
    global _checker
    if _checker is None:
        _checker = LeakChecker(lines=False)
    _checker.error_on_leak = error_on_leak
    return _checker.check_leaks()
