"""What fills the memory when there is no more: live bytes by holder, kind and line, the largest first. Of an error that
ends the program the frames it went through are still there with it, and are read like running ones; one that the
program catches is seen where it is raised: CUDA's allocator tells before it fails, Python 3.12 and later tells every
raise, and before that noted steps do."""

from __future__ import annotations

import collections
import sys
import weakref
from typing import Any, Callable, NamedTuple

import torch

from ._census import Census
from ._findings import holder_of, words_of
from ._naming import key_of
from ._errors import is_programs_own

# Holders that are told.
MOST_HOLDERS = 6
# Shortages of one run that are looked at: a program may try again and again.
MOST_LOOKS = 3


class Filling(NamedTuple):
    """What one holder keeps."""

    bytes: int
    storages: int
    kind: str
    line: str | None
    held_by: str


def is_out_of_memory(error: BaseException | None) -> bool:
    """The device's error, the host allocator's, which has no class of its own, or Python's."""
    kind = type(error)
    if issubclass(kind, (torch.OutOfMemoryError, MemoryError)):
        return True
    # A class of the program's own may do anything when it is asked for its text, as may what it
    # has put into the error.
    said = error.args[:1] if kind is RuntimeError and error is not None else ()
    return bool(said) and type(said[0]) is str and "can't allocate memory" in said[0]


class Shortages:
    """Hears of memory running out while the program runs, whether it catches the error or not."""

    def __init__(self, session: Any) -> None:
        self._session = session
        self._looks = 0
        # The last error, which is not kept, by its address and how many frames it had gone through.
        self._last = (0, 0)
        self._tool: int | None = None
        self._has_observer = False
        self.count = 0
        self.on_shortage: Callable[[], None] | None = None

    def start(self) -> None:
        monitoring = getattr(sys, "monitoring", None)
        if monitoring is not None:
            free = [tool for tool in (3, 4) if monitoring.get_tool(tool) is None]
            if free:
                self._tool = free[0]
                monitoring.use_tool_id(self._tool, "plimsoll watch")
                monitoring.register_callback(self._tool, monitoring.events.RAISE, self._raised)
                monitoring.set_events(self._tool, monitoring.events.RAISE)

    def stop(self) -> None:
        monitoring = getattr(sys, "monitoring", None)
        if monitoring is not None and self._tool is not None:
            monitoring.set_events(self._tool, 0)
            monitoring.register_callback(self._tool, monitoring.events.RAISE, None)
            monitoring.free_tool_id(self._tool)
            self._tool = None

    def follow_device(self) -> None:
        """Once CUDA is in use: its allocator tells before the error is raised. What is attached stays."""
        if self._has_observer or not torch.cuda.is_initialized():
            return
        attach = getattr(torch._C, "_cuda_attach_out_of_memory_observer", None)
        if attach is not None:
            self._has_observer = True
            # Weakly: what is attached is never forgotten.
            seen = weakref.WeakMethod(self.seen)
            attach(lambda *_: (method := seen()) and method())

    def _raised(self, code: Any, offset: int, error: BaseException) -> None:
        if issubclass(type(error), (RuntimeError, MemoryError)):
            self.raised(error)

    def noted(self, error: BaseException) -> None:
        """An error of a noted operation, which Python has told already where it tells every raise."""
        if self._tool is None:
            self.raised(error)

    def raised(self, error: BaseException) -> None:
        """An error that may be one. It comes from several places on its way, and CUDA's has been told already. It must arrive
        whatever happens here."""
        try:
            self._follow(error)
        except Exception as other:
            if is_programs_own(other):
                raise

    def _follow(self, error: BaseException) -> None:
        if self._has_observer and issubclass(type(error), torch.OutOfMemoryError):
            return
        last, depth = self._last
        now = _depth(error)
        # Another error may take the address of one that the program has let go of: it begins anew.
        is_on_its_way = id(error) == last and now > depth
        if is_on_its_way or is_out_of_memory(error):
            self._last = (id(error), now)
            if not is_on_its_way:
                self.seen()

    def seen(self, error: BaseException | None = None) -> None:
        """Looks at what is alive, at once: the frames that hold it still run."""
        if not self._session.is_running or not self._session.is_ours:
            return
        self.count += 1
        if self._looks >= MOST_LOOKS:
            return
        self._looks += 1
        try:
            self._session.fillings = fillings(self._session, error) or self._session.fillings
            if self.on_shortage is not None:
                self.on_shortage()
        except Exception as other:  # the program's own error is on its way, and must arrive
            if is_programs_own(other):
                raise


def _depth(error: BaseException) -> int:
    """The frames that an error has gone through."""
    count, traceback = 0, error.__traceback__
    while traceback is not None:
        count, traceback = count + 1, traceback.tb_next
    return count


def fillings(session: Any, error: BaseException | None) -> list[Filling]:
    """Never fails by itself: an error here must not hide the program's."""
    traceback = error.__traceback__ if error is not None else None
    try:
        with session.making.paused():
            census = Census(session.looks.own_ids(), traceback=traceback, loops=session.steps.loaders())
    except Exception as other:
        if is_programs_own(other):
            raise
        return []
    if not census.is_whole:
        session.limits.setdefault("other threads were computing when memory ran out: gradients and graphs are left out")
    by_holder: dict[Any, list[int]] = collections.defaultdict(list)
    for key, owner in census.owners.items():
        by_holder[key_of(holder_of(owner.hold))].append(key)
    found = []
    for keys in by_holder.values():
        largest = max(keys, key=census.bytes_of.__getitem__)
        owner = census.owners[largest]
        lines = collections.Counter(
            str(session.making.rows[key].place) for key in keys if key in session.making.rows
        )
        line = lines.most_common(1)[0][0] if lines else None
        total = sum(census.bytes_of[key] for key in keys)
        found.append(Filling(total, len(keys), owner.kind, line, words_of(owner.hold)))
    return sorted(found, key=lambda one: -one.bytes)[:MOST_HOLDERS]
