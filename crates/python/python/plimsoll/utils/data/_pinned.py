"""Worker processes whose batches are pinned by a thread of the loader's process, ahead of their use. The thread alone talks to the
workers; the loop leaves word for it and takes what it has done."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from ._failure import Failure, WorkerGone
from ._processes import Processes


class Pinned:
    """Worker processes, and the thread that pins what they make."""

    def __init__(self, processes: Processes, pin: Callable[[Any], Any]) -> None:
        self._processes = processes
        self._pin = pin
        self._owner = os.getpid()
        self._changed = threading.Condition()
        #: Words for the thread, as calls.
        self._words: deque[Callable[[], Any]] = deque()
        self._results: dict[int, Any] = {}
        self._epoch = 0
        self._gone: WorkerGone | None = None
        self._is_stopped = False
        self._wakes, self._wake = os.pipe()
        processes.wake_by(self._wakes)
        self._thread = threading.Thread(target=self._run, name="plimsoll pin", daemon=True)
        self._thread.start()

    def pids(self) -> list[int]:
        """The numbers of the worker processes in the system."""
        return self._processes.pids()

    def submit(self, worker: int, step: int, keys: Any) -> None:
        """Asks a worker for a step."""
        with self._changed:
            self._leave_word(lambda: self._processes.submit(worker, step, keys))

    def begin_epoch(self) -> None:
        """Forgets what was asked for."""
        with self._changed:
            self._epoch += 1
            self._results.clear()
            self._leave_word(self._processes.begin_epoch)

    def _leave_word(self, word: Callable[[], Any]) -> None:
        self._words.append(word)
        os.write(self._wake, b"w")

    def take(self, step: int | None, timeout: float) -> tuple[int, Any]:
        """The result of a step, or of whichever is there first."""
        with self._changed:
            while not (self._results if step is None else step in self._results):
                if self._gone is not None:
                    gone, self._gone = self._gone, None
                    raise gone
                if not self._thread.is_alive():
                    raise RuntimeError("Pin memory thread exited unexpectedly")
                if not self._changed.wait(timeout or None) and timeout:
                    raise RuntimeError(f"DataLoader timed out after {timeout} seconds")
            found = next(iter(self._results)) if step is None else step
            return found, self._results.pop(found)

    def _run(self) -> None:
        try:
            while not self._is_stopped:
                self._round()
        finally:
            with self._changed:
                self._changed.notify_all()

    def _round(self) -> None:
        with self._changed:
            words, self._words = self._words, deque()
            epoch = self._epoch
        for word in words:
            word()
        try:
            arrived = self._processes.arrivals()
        except WorkerGone as gone:
            with self._changed:
                self._gone = gone
                self._changed.notify_all()
            return
        for step, message in arrived:
            result = self._pinned(message)
            with self._changed:
                if epoch == self._epoch:
                    self._results[step] = result
                    self._changed.notify_all()
            # The next wait must not keep the batch.
            del result, message
        del arrived

    def _pinned(self, message: Any) -> Any:
        try:
            value = message.value()
            return value if isinstance(value, Failure) else self._pin(value)
        except Exception:
            return Failure("in pin memory thread for device 0")

    def stop(self) -> None:
        """Ends the thread and the workers."""
        if os.getpid() != self._owner or self._is_stopped:
            return
        self._is_stopped = True
        os.write(self._wake, b"w")
        if self._thread is not threading.current_thread():
            self._thread.join()
        self._processes.stop()
        self._results.clear()
        os.close(self._wake)
        os.close(self._wakes)
