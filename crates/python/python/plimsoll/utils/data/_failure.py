"""What comes of a worker instead of a batch: an exception, the end of its stream, or its own end."""

from __future__ import annotations

import sys
import traceback
from typing import Any


class Failure:
    """An exception of a worker, as text and class: the exception itself would keep the worker's frames, and all they hold."""

    def __init__(self, where: str) -> None:
        self.exc_type = sys.exc_info()[0] or RuntimeError
        self.name = self.exc_type.__name__
        self.where = where
        self.text = traceback.format_exc()

    def reraise(self) -> None:
        """Raises it here: the same class, with the worker's traceback in its message."""
        message: Any = f"Caught {self.name} {self.where}.\nOriginal {self.text}"
        if self.exc_type is KeyError:
            # A KeyError shows the repr of its argument; this one's is the text.
            message = _Verbatim(message)
        elif getattr(self.exc_type, "message", None):
            raise self.exc_type(message=message)  # type: ignore[call-arg]
        try:
            exception = self.exc_type(message)
        except Exception:
            # A class that takes other arguments cannot be made again.
            raise RuntimeError(message) from None
        try:
            raise exception
        finally:
            # Its traceback has this frame: held here too, it would keep the consumer's frames, and the batches that wait
            # in them, until the garbage collector comes.
            del exception


class _Verbatim(str):
    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class StreamEnd:
    """A worker's stream is over."""


class WorkerGone(Exception):
    """Workers have ended before they were told to. `told` is the error for the program."""

    def __init__(self, workers: list[int], told: RuntimeError) -> None:
        super().__init__(workers)
        self.workers = workers
        self.told = told
