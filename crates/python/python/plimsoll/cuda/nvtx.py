"""Ranges and marks of NVIDIA's profiler, kept as ranges of our own: they stand in traces of `profiler`."""

from __future__ import annotations

import contextlib
import threading
from typing import Any, Iterator

from .. import autograd

_open = threading.local()


def _ranges() -> list[Any]:
    if not hasattr(_open, "ranges"):
        _open.ranges = []
    ranges: list[Any] = _open.ranges
    return ranges


def range_push(msg: str) -> int:
    """Opens a range; gives the depth at which it lies, from 0."""
    opened = autograd.profiler.record_function(msg)
    opened.__enter__()
    _ranges().append(opened)
    return len(_ranges()) - 1


def range_pop() -> int:
    """Closes the range that was opened last; gives the depth at which it lay."""
    if not _ranges():
        return -1
    _ranges().pop().__exit__(None, None, None)
    return len(_ranges())


@contextlib.contextmanager
def range(msg: str, *args: Any, **kwargs: Any) -> Iterator[None]:
    """A range around a block; `msg` may be a format of the arguments."""
    range_push(msg.format(*args, **kwargs))
    try:
        yield
    finally:
        range_pop()


def mark(msg: str) -> None:
    """A moment: a range of no length."""
    range_push(msg)
    range_pop()
