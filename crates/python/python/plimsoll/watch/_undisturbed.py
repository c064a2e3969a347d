"""Moments at which gradients and graphs may be read. PyTorch changes both without the interpreter's lock: in backward, where they
are cleared, and in operations that write in place. Who reads one in another thread meanwhile makes PyTorch fail. A thread that
waits for the interpreter may do so in the middle of a change. So gradients are read only while all other threads are idle,
which they stay because a moment keeps the interpreter for itself. What is read then is `_gradients.py`."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import time
from types import FrameType, TracebackType
from typing import Any, Callable

from ._attributes import names_in
from ._errors import is_an_answer
from ._frames import frames_of_threads

# For so long no other thread gets the interpreter: four times what was needed before, within these. This thread
# waits as long where another one computes in Python.
_LEAST_KEPT, _MOST_KEPT = 0.1, 0.5
# The part of it in which gradients are read: a thread that waits asks for the interpreter at its
# end. Then it is asked anew whether the others are idle.
_READ_PART = 0.8
# For so long the interpreter is given away: who sleeps all through it waits for something else.
_GIVEN_SECONDS = 0.002
# How long a moment is waited for, unless told otherwise.
PATIENCE = 0.01
# Whoever calls this computes gradients.
_BACKWARD = "run_backward"
# Where threads of Python wait and change nothing.
_WAITING_IN = ("threading", "queue", "selectors", "socket", "concurrent.futures.thread", "asyncio.base_events")
_TASKS = "/proc/self/task"
_MOST_STATUS = 4096
# Through these the interpreter is not given away, as Python's own functions do while they read.
_C = ctypes.PyDLL(None) if os.path.isdir(_TASKS) else None


# The watch's own threads, which touch no tensor.
own_threads: set[int] = set()


class _Kept:
    """How long the interpreter is kept from other threads, by everybody who wants it kept, and what it was before."""

    def __init__(self) -> None:
        self._by: dict[int, float] = {}
        self._before = 0.0
        # As it is read back, to tell whether the program has set another one meanwhile.
        self._set = 0.0

    def keep(self, who: int, seconds: float) -> float:
        """Gives back for how long it is kept now."""
        now = sys.getswitchinterval()
        if not self._by:
            self._before = now
        self._by[who] = max(seconds, now)
        self._put(max(self._by.values()))
        return self._by[who]

    def leave(self, who: int) -> None:
        if self._by.pop(who, None) is not None and sys.getswitchinterval() == self._set:
            self._put(max(self._by.values(), default=self._before))

    def _put(self, seconds: float) -> None:
        sys.setswitchinterval(seconds)
        self._set = sys.getswitchinterval()


class Moment:
    """A block in which `may_read` says, at any time, whether gradients can be read now. Within another one of the same thread
    it is that one."""

    _of_threads: dict[int, Moment] = {}
    _kept = _Kept()
    _took = 0.0

    def __init__(self, patience: float = PATIENCE):
        self._patience = patience
        self._outer: Moment | None = None
        self._thread = threading.get_ident()
        self._until = 0.0
        self._seconds = 0.0
        self._began = 0.0
        # The seconds until it came, or was given up.
        self.waited = 0.0

    def may_read(self) -> bool:
        """Whether nothing else in the process runs, nor can before the next question."""
        moment = self._outer or self
        return time.perf_counter() < moment._until or (moment._until > 0 and moment._renew())

    def __enter__(self) -> Moment:
        current = Moment._of_threads.get(self._thread)
        if current is not None:
            self._outer = current
            return self
        try:
            self._began = time.perf_counter()
            if frames_of_threads().keys() - own_threads == {self._thread}:
                self._until = float("inf")
            elif getattr(sys, "_is_gil_enabled", lambda: True)():
                self._keep()
                self.waited = time.perf_counter() - self._began
            Moment._of_threads[self._thread] = self
        except BaseException:
            # A handler of the program has raised: the block is not entered, and nobody would leave.
            self._leave()
            raise
        return self

    def _keep(self) -> None:
        # While the interpreter changes hands quickly: reading a folder gives it away.
        tasks = _tasks()
        self._seconds = Moment._kept.keep(id(self), min(max(4 * Moment._took, _LEAST_KEPT), _MOST_KEPT))
        deadline = time.perf_counter() + self._patience
        while not (is_idle := _are_others_idle(tasks)) and time.perf_counter() < deadline:
            pass
        if is_idle:
            self._until = time.perf_counter() + _READ_PART * self._seconds

    def _renew(self) -> bool:
        """The time is over: whether all others are idle again. First who waits for the interpreter gets it, as it would soon."""
        time.sleep(_GIVEN_SECONDS)
        is_idle = _are_others_idle(_tasks())
        self._until = time.perf_counter() + _READ_PART * self._seconds if is_idle else 0.0
        return is_idle

    def __exit__(self, kind: type | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        if self._outer is not None:
            self._outer = None
            return
        if self._until:
            Moment._took = time.perf_counter() - self._began - self.waited
        self._leave()

    def _leave(self) -> None:
        Moment._kept.leave(id(self))
        self._until = 0.0
        if Moment._of_threads.get(self._thread) is self:
            del Moment._of_threads[self._thread]

    @classmethod
    def leave_rest(cls) -> None:
        """Ends a moment of this thread whose end a handler of the program has prevented."""
        left = cls._of_threads.get(threading.get_ident())
        if left is not None:
            left._leave()


def _tasks() -> list[bytes] | None:
    """The threads of the process; None where the system does not tell, or the program may open no more files."""
    try:
        return [task.encode() for task in os.listdir(_TASKS)] if _C is not None else None
    except OSError as error:
        if not is_an_answer(error):
            raise
        return None


def _are_others_idle(tasks: list[bytes] | None) -> bool:
    """Whether every other thread waits for something else than the interpreter, and none is in backward. Threads that wait in
    Python's own modules are known by that. For others the system is asked, and then all threads of the process must sleep while
    the interpreter is given away: one that computes may do it for another that waits for it."""
    if _do_frames_wait():
        return True
    before = _sleeping(tasks) if tasks is not None and not _is_any_in_backward() else None
    time.sleep(_GIVEN_SECONDS)
    if before is None:
        return False
    # From here on without a call that would give the interpreter away.
    return not _is_any_in_backward() and _sleeping(list(before)) == before and _count() == len(before) + 1


def _do_frames_wait() -> bool:
    frames = frames_of_threads()
    # This frame would hold itself, and with it all that its callers hold.
    for own in (threading.get_ident(), *own_threads):
        frames.pop(own, None)
    try:
        waiting = {names_in(sys.modules.get(name)).get("__file__") for name in _WAITING_IN}
        return all(frame.f_code.co_filename in waiting for frame in frames.values()) and not _is_any_in_backward()
    finally:
        frames.clear()


def _is_any_in_backward() -> bool:
    frames = frames_of_threads()
    own = frames.pop(threading.get_ident(), None)
    try:
        count = sum(map(_is_in_backward, frames.values()))
        return count > 0 and not (count == 1 and _is_waited_for(own))
    finally:
        frames.clear()
        own = None


def _is_in_backward(frame: FrameType | None) -> bool:
    while frame is not None:
        if _BACKWARD in frame.f_code.co_names:
            return True
        frame = frame.f_back
    return False


def _is_waited_for(own: FrameType | None) -> bool:
    """Whether this is the thread of a device in which backward runs a hook, so that the thread which called backward waits for
    it. With several devices there are more such threads, which do not."""
    torch: Any = sys.modules.get("torch")
    task: Callable[[], int] | None = getattr(torch._C, "_current_graph_task_id", None) if torch is not None else None
    if task is None or task() < 0 or _is_in_backward(own):
        return False
    return not torch.cuda.is_initialized() or torch.cuda.device_count() == 1


def _sleeping(tasks: list[bytes]) -> dict[bytes, bytes] | None:
    """How often each other thread of the process has been put to sleep; None if one does not sleep, or the system does not
    tell."""
    found: dict[bytes, bytes] = {}
    own = str(threading.get_native_id()).encode()
    for task in tasks:
        status = _status_of(b"/proc/self/task/%b/status" % task) if task != own else b""
        if not status:  # this one, or it has ended
            continue
        state, switches = status.find(b"\nState:\t"), status.find(b"\nvoluntary_ctxt_switches:")
        if state < 0 or switches < 0 or status[state + 8 : state + 9] not in b"SZX":
            return None
        found[task] = status[switches:]
    return found


def _count() -> int:
    """The threads of the process."""
    status = _status_of(b"/proc/self/status")
    at = status.find(b"\nThreads:\t")
    return int(status[at + 10 : status.index(b"\n", at + 1)]) if at >= 0 else 0


def _status_of(path: bytes) -> bytes:
    """A small file's content; empty if it is not there."""
    assert _C is not None
    descriptor = _C.open(path, os.O_RDONLY | os.O_CLOEXEC)
    if descriptor < 0:
        return b""
    content = ctypes.create_string_buffer(_MOST_STATUS)
    count = _C.read(descriptor, content, _MOST_STATUS)
    _C.close(descriptor)
    return content.raw[: max(count, 0)]
