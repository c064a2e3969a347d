"""Moments at which a census may read gradients. PyTorch changes them without the interpreter's lock, in backward and where they
are cleared: who reads one in another thread meanwhile makes PyTorch fail. So a census keeps the interpreter for itself, and reads
no gradients while some other thread may be changing them."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from types import FrameType
from typing import Iterator

# For so long no other thread gets the interpreter. Bounded, as this thread waits for as long if another one has it.
_KEPT_SECONDS = 0.5
# Whoever waited for the interpreter before gets it within so long.
_ASKED_SECONDS = 0.006
# Functions that use these names may change gradients.
_CHANGING = frozenset(("grad", "backward", "zero_grad", "_engine_run_backward"))
# Where threads wait that do nothing.
_IDLE = tuple(f"{name}.py" for name in ("threading", "queue", "selectors", "socket", "concurrent/futures/thread", "asyncio/base_events"))


def are_gradients_changing() -> bool:
    """Whether another thread may be changing gradients. A thread that is not Python's own is one that computes them: a hook
    runs there, and the threads that wait for it change nothing."""
    if isinstance(threading.current_thread(), threading._DummyThread):
        return False
    others = sys._current_frames()
    # This frame would hold itself, and with it all that its callers hold.
    del others[threading.get_ident()]
    try:
        return any(_may_change(frame) for frame in others.values())
    finally:
        others.clear()


def _may_change(frame: FrameType) -> bool:
    is_idle = frame.f_code.co_filename.endswith(_IDLE)
    at: FrameType | None = frame
    while at is not None:
        code = at.f_code
        if code.co_name in _CHANGING or not (is_idle or _CHANGING.isdisjoint(code.co_names)):
            return True
        at = at.f_back
    return False


@contextlib.contextmanager
def undisturbed() -> Iterator[bool]:
    """Keeps the interpreter; whether gradients can be read meanwhile. Within another one it has been waited for already."""
    interval = sys.getswitchinterval()
    if len(sys._current_frames()) == 1 or interval >= _KEPT_SECONDS:
        yield not are_gradients_changing()
        return
    sys.setswitchinterval(_KEPT_SECONDS)
    try:
        until = time.perf_counter() + _ASKED_SECONDS
        while time.perf_counter() < until:
            pass
        yield not are_gradients_changing()
    finally:
        sys.setswitchinterval(interval)
