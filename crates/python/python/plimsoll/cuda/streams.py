"""Streams of a GPU: which one this thread's work goes to, and for how long."""

from __future__ import annotations

from typing import Any

from .. import _plimsoll
from .._plimsoll import Event as Event
from .._plimsoll import Stream as Stream
from ._place import place


def current_stream(device: Any = None) -> Stream:
    """The stream that this thread's work on a GPU goes to."""
    return _plimsoll._current_stream(place(device))


def default_stream(device: Any = None) -> Stream:
    """The stream that work on a GPU goes to unless another is named."""
    return _plimsoll._default_stream(place(device))


def set_stream(stream: Stream | None) -> None:
    """Sends this thread's work on the stream's GPU there from now on; None changes nothing."""
    if stream is not None:
        _plimsoll._set_stream(stream)


class StreamContext:
    """Sends this thread's work to a stream until the block ends; None changes nothing."""

    def __init__(self, stream: Stream | None):
        self.stream = stream
        self._scopes: list[Any] = []

    def __enter__(self) -> Stream | None:
        if self.stream is not None:
            self._scopes.append(_plimsoll._StreamScope(self.stream))
        return self.stream

    def __exit__(self, *failure: Any) -> None:
        if self._scopes:
            self._scopes.pop().leave()


def stream(stream: Stream | None) -> StreamContext:
    """A block whose work on the stream's GPU goes to the stream."""
    return StreamContext(stream)
