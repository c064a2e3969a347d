"""The figures of a watched program while it runs: for `plimsoll top`, through `_live_socket.py`, and as a line on standard
error every so often. A thread of the watch's own answers, from what was gathered at the end of a step: it touches no
tensor. Only while somebody looks is a census taken for it, in the program's thread, and so seldom that it takes at
most `CENSUS_SHARE` of the time."""

from __future__ import annotations

import _thread
import collections
import os
import sys
import time
from typing import Any, Callable, NamedTuple

import torch

from ._census import Census
from ._findings import holder_of, words_of
from ._holders import Hold
from ._levels import resident_bytes
from ._live_socket import VERSION, LiveSocket
from ._render import size
from ._undisturbed import own_threads

# Whoever asked longer ago does not look any more.
LOOKS_FOR = 5.0
# The share of the time that censuses for those who look may take, and the least time between two.
CENSUS_SHARE = 0.03
LEAST_PAUSE = 0.5
# Looks that growth is told over, and rows of a part that are told.
KEPT_LOOKS = 12
MOST_ROWS = 40
# Seconds over which a step's time is the mean.
TIMED_FOR = 5.0
# What is alive is said to be of earlier when it is older than so many seconds.
STALE = 3.0
# The thread looks this often whether the watch is over.
TURN = 1.0
NOT_NOTED = "line not noted"
OUTSIDE = "outside of modules"


class Share(NamedTuple):
    """What one kind, module, line or holder has."""

    name: str
    bytes: int
    storages: int


class Look(NamedTuple):
    """What was alive at the end of a step: bytes and storages by kind, module, line and holder."""

    step: int
    bytes: int
    parts: dict[str, dict[Any, Share]]
    devices: dict[str, dict[str, int]]


class Live:
    """Serves one session. `step_ended` is the program's side, everything else the thread's."""

    def __init__(self, session: Any, every: float | None = None, write: Callable[[str], None] = lambda _: None):
        """`every` so many seconds a line goes to `write`; without it none does."""
        self._session = session
        self._every = every
        self._write = write
        self._began = time.monotonic()
        self._asked_at = -LOOKS_FOR
        self._looks: collections.deque[Look] = collections.deque(maxlen=KEPT_LOOKS)
        self._next_look = 0.0
        # Whether another thread was computing at the latest look, which then tells nothing.
        self._is_put_off = False
        self._times: collections.deque[tuple[float, int]] = collections.deque(maxlen=256)
        self._is_over = False
        self._name = os.path.basename(sys.argv[0]) if sys.argv and sys.argv[0] else "python"
        self._socket = LiveSocket(self.figures)

    def start(self) -> None:
        # Not by `threading`: the program would find one thread more among its own.
        _thread.start_new_thread(self._serve, ())

    def stop(self) -> None:
        self._is_over = True
        self._socket.close()

    def leave_child(self) -> None:
        self._is_over = True
        own_threads.clear()
        self._socket.leave()

    # ---- the program's thread, at the end of a step ----

    @property
    def is_looked_at(self) -> bool:
        return time.monotonic() - self._asked_at < LOOKS_FOR

    def step_ended(self, step: int, census: Callable[[], Census]) -> None:
        """Looks at what is alive, if somebody wants to know and it is not too soon."""
        if not self.is_looked_at or time.monotonic() < self._next_look:
            return
        # The processor's time: on a busy machine the clock's says nothing of the cost.
        began = time.thread_time()
        if self._looks and self._looks[0].step < self._session.growth.warm_until <= step:
            # Gradients and the optimizer's state came since: that is no growth.
            self._looks.clear()
        found = census()
        if found.is_whole:
            self._looks.append(self._look(step, found))
        self._is_put_off = not found.is_whole
        # What was waited for other threads is the program's time too.
        took = time.thread_time() - began + found.waited
        self._next_look = time.monotonic() + max(took / CENSUS_SHARE, LEAST_PAUSE)

    def _look(self, step: int, census: Census) -> Look:
        parts: dict[str, dict[Any, Share]] = {by: {} for by in ("kind", "module", "line", "holder")}
        rows = self._session.making.rows
        for key, owner in census.owners.items():
            row = rows.get(key)
            line = str(row.place) if row is not None and row.place is not None else NOT_NOTED
            module = census.module_of.get(key, OUTSIDE)
            holder, shown = _container(owner.hold)
            # A holder's words tell a length, which changes from look to look; its edge does not.
            names: dict[str, tuple[Any, str]] = {"kind": (owner.kind, owner.kind), "module": (module, module)}
            names |= {"line": (line, line), "holder": (holder.edge(), "")}
            for by, (which, name) in names.items():
                of = parts[by].get(which) or Share(name or words_of(shown), 0, 0)
                parts[by][which] = Share(of.name, of.bytes + census.bytes_of[key], of.storages + 1)
        return Look(step, census.live_bytes, parts, _devices())

    # ---- the thread ----

    def _serve(self) -> None:
        due = time.monotonic() + (self._every or 0.0)
        own_threads.add(_thread.get_ident())
        try:
            while not self._is_over and self._session.is_running:
                now = time.monotonic()
                if self._every is not None and now >= due - LOOKS_FOR / 2:
                    # Before the line is due, so that a step has ended by then.
                    self._ask()
                if self._every is not None and now >= due:
                    self._write(line(self.figures()))
                    due = now + self._every
                self._time_steps(now)
                self._socket.wait(TURN if self._every is None else min(TURN, max(due - now, 0.05)))
        except Exception as error:  # the program goes on whatever happens here
            if not self._is_over:
                self._session.limits.setdefault(f"figures were served no longer: {type(error).__name__}: {error}")
        finally:
            # Another thread may get its number.
            own_threads.discard(_thread.get_ident())
            self._socket.close()
            self._socket.leave()

    def _ask(self) -> None:
        self._asked_at = time.monotonic()
        # Steps that are only counted are told of again.
        self._session.steps.quiet_until = 0

    def _time_steps(self, now: float) -> None:
        self._times.append((now, self._session.steps.count))
        while len(self._times) > 2 and now - self._times[0][0] > TIMED_FOR:
            self._times.popleft()

    def _step_seconds(self) -> float | None:
        (began, before), (now, after) = self._times[0], self._times[-1]
        return (now - began) / (after - before) if after > before else None

    def figures(self) -> dict[str, Any]:
        """What is told; `_live_socket.py` says where its fields are described."""
        self._ask()
        self._time_steps(time.monotonic())
        looks = list(self._looks)
        last = looks[-1] if looks else None
        session = self._session
        notes = []
        each = self._step_seconds()
        if last is not None and (session.steps.count - last.step) * (each or 0.0) > STALE:
            notes.append(f"what is alive is that of {session.steps.count - last.step} steps ago")
        if self._is_put_off:
            notes.append("other threads were computing when what is alive was to be looked at")
        if last is None:
            notes.append("live bytes follow at the end of the next step")
        elif NOT_NOTED in last.parts["line"]:
            notes.append("lines are noted in some steps only: what was made in others has none")
        return {
            "live": VERSION,
            "process": {
                "pid": os.getpid(),
                "name": self._name,
                "runtime": f"PyTorch {torch.__version__}",
                "seconds": round(time.monotonic() - self._began, 1),
            },
            "step": session.steps.told,
            "steps_of": session.steps.counted_by,
            "epoch": session.steps.epochs,
            "step_seconds": each,
            "resident_bytes": resident_bytes(),
            "levels": _levels(looks),
            "parts": [_part(by, looks) for by in ("kind", "module", "line", "holder")] if looks else [],
            "growing": [
                {
                    "bytes_per_step": finding.bytes_per_step,
                    "line": finding.line,
                    "kind": finding.kind,
                    "held_by": finding.held_by,
                }
                for finding in session.findings
            ],
            "notes": notes,
        }


def _container(hold: Hold) -> tuple[Hold, Hold]:
    """What holds something together with others: the first container on its path, or the name itself; and what is shown
    of it, for a list or set with its length."""
    holder = holder_of(hold)
    path = holder.path()
    at = next((at for at, step in enumerate(path) if at and step.how in ("entry", "item", "key", "cache")), None)
    if at is None:
        return holder, holder
    return path[at - 1], path[at] if path[at].how == "entry" else path[at - 1]


def _devices() -> dict[str, dict[str, int]]:
    if not torch.cuda.is_initialized():
        return {}
    found = {}
    for device in range(torch.cuda.device_count()):
        if torch.cuda.max_memory_reserved(device):
            found[f"cuda:{device}"] = {
                "allocated_bytes": torch.cuda.memory_allocated(device),
                "reserved_bytes": torch.cuda.memory_reserved(device),
                "peak_bytes": torch.cuda.max_memory_allocated(device),
            }
    return found


def _growth(first: float, last: float, looks: list[Look]) -> float | None:
    steps = looks[-1].step - looks[0].step
    return (last - first) / steps if steps > 0 else None


def _levels(looks: list[Look]) -> list[dict[str, Any]]:
    if not looks:
        return []
    first, last = looks[0], looks[-1]
    each = _growth(first.bytes, last.bytes, looks)
    # The host's allocator has no counters: what is reachable by name is what is known of it.
    levels: list[dict[str, Any]] = [{"name": "tensors", "allocated_bytes": last.bytes, "growth_per_step": each}]
    for name, level in last.devices.items():
        before = first.devices.get(name, level)["allocated_bytes"]
        levels.append({"name": name, **level, "growth_per_step": _growth(before, level["allocated_bytes"], looks)})
    return levels


def _part(by: str, looks: list[Look]) -> dict[str, Any]:
    first, last = looks[0].parts[by], looks[-1].parts[by]
    rows = [
        {
            "name": share.name,
            "bytes": share.bytes,
            "count": share.storages,
            "growth_per_step": _growth(first[which].bytes if which in first else 0, share.bytes, looks),
        }
        for which, share in last.items()
    ]
    rows.sort(key=lambda row: (-int(row["bytes"] or 0), str(row["name"])))
    rest = rows[MOST_ROWS - 1 :] if len(rows) > MOST_ROWS else []
    if rest:
        total = {key: sum(int(row[key] or 0) for row in rest) for key in ("bytes", "count")}
        rows = [*rows[: MOST_ROWS - 1], {"name": f"{len(rest)} more", **total, "growth_per_step": None}]
    return {"by": by, "rows": rows}


def line(figures: dict[str, Any]) -> str:
    """The figures in one line."""
    said = [f"watch: step {figures['step']}"]
    each = figures["step_seconds"]
    if each is not None:
        said.append(f"{each * 1000:.1f} ms a step" if each < 1 else f"{each:.2f} s a step")
    for level in figures["levels"]:
        growth = level["growth_per_step"]
        by = f" ({'-' if growth < 0 else '+'}{size(abs(growth))} a step)" if growth else ""
        said.append(f"{level['name']} {size(level['allocated_bytes'])}{by}")
    if figures["resident_bytes"] is not None:
        said.append(f"process {size(figures['resident_bytes'])}")
    for growing in figures["growing"][:1]:
        said.append(f"growing {size(growing['bytes_per_step'])} a step at {growing['line']}, {growing['kind']}")
    return ", ".join(said) + "\n"
