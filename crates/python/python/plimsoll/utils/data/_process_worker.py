"""The life of a worker process: it is asked for steps, and tells their batches. The loader's side is `_processes.py`."""

from __future__ import annotations

import os
import random
import select
import socket
import sys
from collections import deque
from collections.abc import Callable
from typing import Any

from ... import _plimsoll
from ._failure import Failure
from ._messages import Message, encode
from ._pipe import Pipe
from ._worker_info import WorkerInfo, set_process_worker_info
from ._worker_steps import WorkerSteps

#: How often a worker that waits looks whether its loader's process is still there.
_LOOK_MS = 5000


def live(
    end: socket.socket,
    info: tuple[int, int, int],
    held_dataset: list[Any],
    make_fetcher: Callable[[Any], Any],
    init_fn: Callable[[int], Any] | None,
) -> None:
    """Does the steps that are asked for until the loader hangs up. `info` is the worker's number, how many there are, and the seed
    of all."""
    # The list is emptied, so that the arguments of the process do not keep what a program deletes in `worker_init_fn`.
    dataset = held_dataset.pop()
    number, count, base_seed = info
    try:
        _plimsoll.set_num_threads(1)
        _seed(number, base_seed)
        set_process_worker_info(WorkerInfo(number, count, base_seed + number, dataset, None, "multiprocessing"))
        _work(_Asked(Pipe(end)), dataset, make_fetcher, init_fn, number)
    except (KeyboardInterrupt, BrokenPipeError, ConnectionResetError):
        # Interrupts reach the loader's process too, and a loader that hangs up wants nothing more.
        pass


def _seed(number: int, base_seed: int) -> None:
    """The process's random numbers are the worker's own, as in PyTorch."""
    random.seed(base_seed + number)
    _plimsoll.manual_seed(base_seed + number)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        entropy = [number, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]
        numpy.random.seed(numpy.random.SeedSequence(entropy).generate_state(4))


class _Asked:
    """The steps that a worker is asked for, in order; those of an epoch that was left are passed over."""

    def __init__(self, pipe: Pipe) -> None:
        self.pipe = pipe
        self._waiting: deque[tuple[int, int, Message]] = deque()
        self._poll = select.poll()
        self._poll.register(pipe.fileno(), select.POLLIN)
        self._parent = os.getppid()

    def next(self) -> tuple[int, int, Any] | None:
        """The epoch, the step and its keys; None when there will be no more."""
        while True:
            self._waiting.extend(self.pipe.receive())
            if self.pipe.is_over:
                return None
            while self._waiting:
                epoch, step, message = self._waiting.popleft()
                if not self._waiting or self._waiting[-1][0] == epoch:
                    return epoch, step, message.value()
            if not self._poll.poll(_LOOK_MS) and os.getppid() != self._parent:
                return None


def _work(
    asked: _Asked, dataset: Any, make_fetcher: Callable[[Any], Any], init_fn: Callable[[int], Any] | None, number: int
) -> None:
    where = f"in DataLoader worker process {number}"
    steps = WorkerSteps(number, dataset, make_fetcher, init_fn, where)
    while (task := asked.next()) is not None:
        epoch, step, keys = task
        result = steps.make(epoch, keys)
        asked.pipe.send(epoch, step, _encoded(result, where))
        # The next wait must not keep the batch.
        del result, keys, task


def _encoded(result: Any, where: str) -> Message:
    """The message of a result, or of what is wrong with it: what cannot be sent is an error in its place."""
    try:
        return encode(result)
    except Exception:
        failure = result if isinstance(result, Failure) else Failure(where)
    try:
        return encode(failure)
    except Exception:
        # A class that is known in this process alone cannot be raised in another.
        failure.exc_type = RuntimeError
        return encode(failure)
