"""Context managers and decorators that turn recording off and on, for the calling thread."""

from __future__ import annotations

import contextlib
import threading

from ._plimsoll import _Mode


class _ModeContext(contextlib.ContextDecorator):
    """Enters the mode that its class is named after; may be entered again while it is in force, and by several threads."""

    def __init__(self) -> None:
        self._entered = threading.local()

    def __enter__(self) -> None:
        stack = self._entered.__dict__.setdefault("stack", [])
        stack.append(_Mode(type(self).__name__))

    def __exit__(self, *failure: object) -> None:
        self._entered.stack.pop().leave()


class no_grad(_ModeContext):
    """Operations are not recorded."""


class enable_grad(_ModeContext):
    """Operations are recorded again, inside a `no_grad`."""


class inference_mode(_ModeContext):
    """Operations are not recorded, and new tensors can never enter a graph."""
