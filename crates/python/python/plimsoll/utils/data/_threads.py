"""Threads that make batches ahead: what `multiprocessing_context="thread"` asks for. Step n is made by worker n modulo their
number, as in PyTorch, so that what a worker sees does not depend on how fast the others are; results are handed out in order unless
the loader says otherwise.

Workers know nothing of their loader: when its iterator is forgotten, they are told to stop, and what they made is let go.
"""

from __future__ import annotations

import copy
import random
import sys
import threading
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

from ... import _plimsoll
from ..._modes import inference_mode
from ._failure import Failure, WorkerGone
from ._worker_info import _RNG, WorkerInfo, set_worker_info
from ._worker_steps import WorkerSteps


class _Channel:
    """What workers and consumer share."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.changed = threading.Condition(self.lock)
        self.tasks: list[deque[tuple[int, Any]]] = []
        self.results: dict[int, Any] = {}
        self.arrived: deque[int] = deque()
        #: Counts epochs: fetchers are made anew for each.
        self.epoch = 0
        self.stopped = False
        #: What ended a worker, by its number: it answers no more.
        self.ended: dict[int, Failure] = {}


class Threads:
    """The worker threads of one iterator."""

    def __init__(
        self,
        count: int,
        dataset: Any,
        make_fetcher: Callable[[Any], Any],
        base_seed: int,
        init_fn: Callable[[int], Any] | None,
        pin: Callable[[Any], Any] | None,
    ) -> None:
        self._channel = _Channel()
        self._channel.tasks = [deque() for _ in range(count)]
        self._threads = []
        # What workers make in no frame of the program's is asked for by the line that iterates.
        line = _plimsoll._line()
        modes = _modes_here()
        for number in range(count):
            info = _info(number, count, base_seed + number, dataset)
            arguments = (self._channel, line, modes, info, make_fetcher, init_fn, pin)
            thread = threading.Thread(target=_live, args=arguments, name=f"plimsoll data {number}", daemon=True)
            self._threads.append(thread)
            thread.start()

    def submit(self, worker: int, step: int, keys: Any) -> None:
        with self._channel.changed:
            self._channel.tasks[worker].append((step, keys))
            self._channel.changed.notify_all()

    def take(self, step: int | None, timeout: float) -> tuple[int, Any]:
        """The result of a step, or of whichever is done first."""
        channel = self._channel
        with channel.changed:
            while not (channel.results if step is None else step in channel.results):
                _check_alive(channel)
                if not channel.changed.wait(timeout or None) and timeout:
                    raise RuntimeError(f"DataLoader timed out after {timeout} seconds")
            found = channel.arrived[0] if step is None else step
            channel.arrived.remove(found)
            return found, channel.results.pop(found)

    def begin_epoch(self) -> None:
        """Forgets what was asked for and makes the workers begin anew."""
        with self._channel.changed:
            self._channel.epoch += 1
            for tasks in self._channel.tasks:
                tasks.clear()
            self._channel.results.clear()
            self._channel.arrived.clear()

    def stop(self) -> None:
        """Tells the workers to stop, and waits for them; what they made is let go."""
        channel = self._channel
        with channel.changed:
            channel.stopped = True
            channel.changed.notify_all()
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join()
        channel.results.clear()
        channel.arrived.clear()


class _Modes(NamedTuple):
    """What a thread has switched, and a worker takes over from the thread that makes it, as PyTorch's do by being forked."""

    records: bool
    inference: bool
    #: Kind of device, whether operations on it are cast, and to what.
    autocast: list[tuple[str, bool, Any]]
    caches_casts: bool


def _modes_here() -> _Modes:
    kinds = ("cpu", "cuda")
    autocast = [(kind, _plimsoll.is_autocast_enabled(kind), _plimsoll.get_autocast_dtype(kind)) for kind in kinds]
    caches = _plimsoll.is_autocast_cache_enabled()
    return _Modes(_plimsoll.is_grad_enabled(), _plimsoll.is_inference_mode_enabled(), autocast, caches)


def _adopted(modes: _Modes) -> AbstractContextManager[Any]:
    """Switches this thread's; inference mode is in force until the block ends, the others as long as the thread lives."""
    for kind, enabled, dtype in modes.autocast:
        _plimsoll.set_autocast_enabled(kind, enabled)
        _plimsoll.set_autocast_dtype(kind, dtype)
    _plimsoll.set_autocast_cache_enabled(modes.caches_casts)
    _plimsoll._set_grad_enabled(modes.records)
    return inference_mode() if modes.inference else nullcontext()


def _check_alive(channel: _Channel) -> None:
    """Raises if a worker has ended before it was told to."""
    ended = sorted(channel.ended)
    if ended:
        failures = [channel.ended.pop(number) for number in ended]
        names = ", ".join(map(str, ended))
        told = RuntimeError(
            f"DataLoader worker (thread(s) {names}) exited unexpectedly by {failures[0].name}.\nOriginal {failures[0].text}"
        )
        raise WorkerGone(ended, told)


def _info(number: int, count: int, seed: int, dataset: Any) -> WorkerInfo:
    numpy = sys.modules.get("numpy")
    own_numbers = _RNG(
        random.Random(seed),
        _plimsoll.Generator().manual_seed(seed),
        numpy.random.default_rng(seed % 2**64) if numpy else None,
    )
    # Each has a copy, so that `worker_init_fn` may give each its part; what it holds is shared.
    return WorkerInfo(number, count, seed, copy.copy(dataset), own_numbers, "thread")


def _live(
    channel: _Channel,
    line: int,
    modes: _Modes,
    info: WorkerInfo,
    make_fetcher: Callable[[Any], Any],
    init_fn: Callable[[int], Any] | None,
    pin: Callable[[Any], Any] | None,
) -> None:
    """The life of a worker. What is no `Exception`, such as `SystemExit`, ends it, and its consumer is told."""
    where = f"in DataLoader worker thread {info.id}"
    try:
        _plimsoll._adopt_line(line)
        set_worker_info(info)
        with _adopted(modes):
            # Its draws follow from its seed, whatever the other threads draw.
            assert info.rng is not None
            own = info.rng.torch_generator
            _plimsoll._with_generator(own, lambda: _work(channel, info, make_fetcher, init_fn, pin, where))
    except BaseException:
        with channel.changed:
            channel.ended[info.id] = Failure(where)
            channel.changed.notify_all()


def _work(
    channel: _Channel,
    info: WorkerInfo,
    make_fetcher: Callable[[Any], Any],
    init_fn: Callable[[int], Any] | None,
    pin: Callable[[Any], Any] | None,
    where: str,
) -> None:
    steps = WorkerSteps(info.id, info.dataset, make_fetcher, init_fn, where, pin)
    while True:
        with channel.changed:
            while not channel.stopped and not channel.tasks[info.id]:
                channel.changed.wait()
            if channel.stopped:
                return
            step, keys = channel.tasks[info.id].popleft()
            now = channel.epoch
        result = steps.make(now, keys)
        with channel.changed:
            if not channel.stopped and channel.epoch == now:
                channel.results[step] = result
                channel.arrived.append(step)
                channel.changed.notify_all()
        # The next wait must not keep the batch.
        del result, keys
