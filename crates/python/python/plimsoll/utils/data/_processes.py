"""Worker processes of one iterator: asks them for steps, and takes their batches. What they do is `_process_worker.py`.

Step n is made by worker n modulo their number, as in PyTorch. A worker that is gone is known by the end of its pipe, so that no
handler of signals is needed; what it had sent before is still handed out.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import select
import signal
import time
import warnings
from collections.abc import Callable
from typing import Any

from ._failure import WorkerGone
from ._messages import Message, encode_in_frame
from ._pipe import Pipe, pair
from ._process_worker import live

#: Seconds that a worker has to end after the loader hung up, and again after it was told to end.
_PATIENCE_S = 5.0


class Processes:
    """The worker processes of one iterator."""

    def __init__(
        self,
        count: int,
        dataset: Any,
        make_fetcher: Callable[[Any], Any],
        base_seed: int,
        init_fn: Callable[[int], Any] | None,
        context: Any,
    ) -> None:
        self._owner = os.getpid()
        self._pipes: list[Pipe] = []
        self._processes: list[Any] = []
        self._epoch = 0
        self._ready: dict[int, Message] = {}
        #: Workers that are gone and were told of.
        self._gone: set[int] = set()
        self._poll = select.poll()
        self._by_descriptor: dict[int, int] = {}
        context = multiprocessing if context is None else context
        try:
            for number in range(count):
                self._start(context, number, (number, count, base_seed), ([dataset], make_fetcher, init_fn))
        except BaseException:
            self.stop()
            raise

    def _start(self, context: Any, number: int, info: tuple[int, int, int], work: tuple[Any, ...]) -> None:
        ours, theirs = pair()
        with theirs:
            process = context.Process(target=live, args=(theirs, info, *work), daemon=True)
            try:
                process.start()
            except BaseException as problem:
                ours.close()
                if isinstance(problem, (TypeError, AttributeError, pickle.PicklingError)):
                    warnings.warn(
                        "Got pickle error when attempting to start a worker Process. This might be because the worker Process "
                        "arguments are not picklable. Python 3.14+ changed the multiprocessing start method in non-Mac POSIX "
                        "platforms to 'forkserver', which requires the worker Process arguments to be picklable. You can also try "
                        "multiprocessing.set_start_method('fork').",
                        stacklevel=6,
                    )
                raise
        self._pipes.append(ours)
        self._processes.append(process)
        self._poll.register(ours.fileno(), select.POLLIN)
        self._by_descriptor[ours.fileno()] = number

    def pids(self) -> list[int]:
        """Their numbers in the system."""
        return [process.pid for process in self._processes]

    def submit(self, worker: int, step: int, keys: Any) -> None:
        """Asks a worker for a step."""
        self._pipes[worker].send_later(self._epoch, step, encode_in_frame(keys))
        if self._pipes[worker].is_waiting:
            self._poll.modify(self._pipes[worker].fileno(), select.POLLIN | select.POLLOUT)

    def take(self, step: int | None, timeout: float) -> tuple[int, Any]:
        """The result of a step, or of whichever is there first. Raises `WorkerGone` if a worker ended that was not told to."""
        if os.getpid() != self._owner:
            raise RuntimeError("DataLoader: the workers are of the process that this one was forked from; make a loader here")
        end = time.monotonic() + timeout if timeout else None
        while not (self._ready if step is None else step in self._ready):
            self._check_alive()
            left = None if end is None else end - time.monotonic()
            if left is not None and left <= 0:
                raise RuntimeError(f"DataLoader timed out after {timeout} seconds")
            self._wait(left)
        found = next(iter(self._ready)) if step is None else step
        return found, self._ready.pop(found).value()

    def arrivals(self) -> list[tuple[int, Message]]:
        """Waits until something arrives, or `wake_by` does; what arrived. Raises as `take` does."""
        self._check_alive()
        self._wait(None)
        arrived = list(self._ready.items())
        self._ready.clear()
        return arrived

    def wake_by(self, descriptor: int) -> None:
        """Has `arrivals` return when there is something to read of a descriptor of somebody else's."""
        self._poll.register(descriptor, select.POLLIN)

    def _wait(self, seconds: float | None) -> None:
        """Until something arrives, or there is room to send."""
        for descriptor, events in self._poll.poll(None if seconds is None else seconds * 1000):
            worker = self._by_descriptor.get(descriptor)
            if worker is None:
                os.read(descriptor, 4096)
                continue
            pipe = self._pipes[worker]
            if events & select.POLLOUT:
                pipe.flush()
                if not pipe.is_waiting:
                    self._poll.modify(descriptor, select.POLLIN)
            if events & ~select.POLLOUT:
                self._receive(pipe)

    def _receive(self, pipe: Pipe) -> None:
        for epoch, step, message in pipe.receive():
            if epoch == self._epoch:
                self._ready[step] = message
        if pipe.is_over:
            self._poll.unregister(pipe.fileno())

    def _check_alive(self) -> None:
        gone = [n for n, pipe in enumerate(self._pipes) if pipe.is_over and n not in self._gone]
        if not gone:
            return
        self._gone.update(gone)
        for number in gone:
            self._processes[number].join(_PATIENCE_S)
        pids = ", ".join(str(self._processes[number].pid) for number in gone)
        told = RuntimeError(f"DataLoader worker (pid(s) {pids}) exited unexpectedly")
        told.__cause__ = _cause(self._processes[gone[0]])
        raise WorkerGone(gone, told)

    def begin_epoch(self) -> None:
        """Forgets what was asked for; workers pass over it."""
        self._epoch += 1
        self._ready.clear()

    def stop(self) -> None:
        """Hangs up, and waits for the workers to end; what they made is let go. A child that was forked since has none."""
        if os.getpid() != self._owner:
            return
        for pipe in self._pipes:
            pipe.close()
        self._ready.clear()
        end = time.monotonic() + _PATIENCE_S
        for process in self._processes:
            process.join(max(0.0, end - time.monotonic()))
        for end_now in ("terminate", "kill"):
            late = [process for process in self._processes if process.is_alive()]
            for process in late:
                getattr(process, end_now)()
            for process in late:
                process.join(_PATIENCE_S)


def _cause(process: Any) -> RuntimeError:
    """How a worker ended, in PyTorch's words."""
    code = process.exitcode
    if code is not None and code < 0:
        name = signal.strsignal(-code) or f"Unknown signal {-code}"
        return RuntimeError(f"DataLoader worker (pid {process.pid}) is killed by signal: {name}. ")
    return RuntimeError(
        f"DataLoader worker (pid {process.pid}) exited unexpectedly with exit code {code}. Details are lost due to multiprocessing. "
        "Rerunning with num_workers=0 may give better error trace."
    )
