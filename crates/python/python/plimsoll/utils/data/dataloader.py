"""The loader: a dataset, an order and a way to make batches. Workers are processes (`_processes.py`), or threads (`_threads.py`)."""

from __future__ import annotations

import functools
import itertools
import math
import multiprocessing
import os
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

from ... import _plimsoll
from . import _draws
from ._collate import default_collate, default_convert, pin_memory
from ._failure import Failure, StreamEnd, WorkerGone
from ._fetch import MapFetcher, StreamFetcher
from ._pinned import Pinned
from ._processes import Processes
from ._threads import Threads
from ._worker_info import get_worker_info as get_worker_info
from .dataset import Dataset, IterableDataset
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler

__all__ = ["DataLoader", "default_collate", "default_convert", "get_worker_info"]

T = TypeVar("T", covariant=True)

#: The `multiprocessing_context` of workers that are threads.
THREAD = "thread"


class _EndlessSampler(Sampler[None]):
    """The keys of a stream, which have no meaning but that there is another."""

    def __iter__(self) -> Iterator[None]:
        return itertools.repeat(None)


def _has_accelerator() -> bool:
    """Whether there is a device that copies from pinned memory."""
    if any(device.type != "cpu" for device in _plimsoll._devices()):
        return True
    try:
        _plimsoll.empty(0, device="cuda")
    except (RuntimeError, ValueError):
        return False
    return True


class DataLoader(Generic[T]):
    """Batches of a dataset, in the order and by the rules of PyTorch's loader.

    With `num_workers` above 0 batches are made ahead by that many processes, as in PyTorch; their tensors come in shared memory.

    `multiprocessing_context="thread"`, which PyTorch does not have, makes the workers threads of this process: nothing is pickled,
    they share what the dataset holds, and each has a shallow copy of the dataset itself. Each draws by
    its own seed; the process's seed, and the numbers of Python and NumPy, they share (their own are in `get_worker_info().rng`).
    """

    dataset: Dataset[T]
    batch_size: int | None
    num_workers: int
    pin_memory: bool
    drop_last: bool
    timeout: float
    sampler: Any
    pin_memory_device: str
    prefetch_factor: int | None
    _iterator: Any = None
    __initialized = False

    def __init__(
        self,
        dataset: Dataset[T],
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Sampler[Any] | Iterable[Any] | None = None,
        batch_sampler: Sampler[Any] | Iterable[Any] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], Any] | None = None,
        multiprocessing_context: Any = None,
        generator: Any = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        self.dataset = dataset
        self.num_workers = num_workers
        self.prefetch_factor = _checked_prefetch_factor(num_workers, prefetch_factor)
        if timeout < 0:
            raise ValueError("timeout option should be non-negative")
        if persistent_workers and num_workers == 0:
            raise ValueError("persistent_workers option needs num_workers > 0")
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.in_order = in_order
        self._is_stream = isinstance(dataset, IterableDataset)
        if self._is_stream:
            _check_stream(shuffle, sampler, batch_sampler)
        _check_order(batch_size, bool(shuffle), sampler, batch_sampler, drop_last)
        if batch_sampler is not None:
            batch_size, drop_last = None, False
        if sampler is None:
            sampler = self._usual_sampler(bool(shuffle), generator)
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.generator = generator
        if collate_fn is None:
            collate_fn = default_collate if self._auto_collation else default_convert
        self.collate_fn = collate_fn
        self.persistent_workers = persistent_workers
        self.__initialized = True
        #: What the length of a stream was said to be, to warn if it is longer.
        self._IterableDataset_len_called: int | None = None
        self._iterator = None
        self.check_worker_number_rationality()

    def _usual_sampler(self, shuffle: bool, generator: Any) -> Any:
        if self._is_stream:
            return _EndlessSampler()
        return RandomSampler(self.dataset, generator=generator) if shuffle else SequentialSampler(self.dataset)  # type: ignore[arg-type]

    @property
    def multiprocessing_context(self) -> Any:
        return self.__multiprocessing_context

    @multiprocessing_context.setter
    def multiprocessing_context(self, context: Any) -> None:
        if context is not None:
            if self.num_workers == 0:
                raise ValueError(
                    "multiprocessing_context can only be used with multi-process loading (num_workers > 0), but got "
                    f"num_workers={self.num_workers}"
                )
            methods = multiprocessing.get_all_start_methods()
            if context == THREAD:
                self.__multiprocessing_context = context
                return
            if isinstance(context, str):
                if context not in methods:
                    raise ValueError(
                        f"multiprocessing_context option should specify a valid start method in {methods!r}, but got "
                        f"multiprocessing_context={context!r}"
                    )
                context = multiprocessing.get_context(context)
            if not isinstance(context, multiprocessing.context.BaseContext):
                raise TypeError(
                    "multiprocessing_context option should be a valid context object or a string specifying the start method, "
                    f"but got multiprocessing_context={context}"
                )
        self.__multiprocessing_context = context

    def __setattr__(self, name: str, value: Any) -> None:
        fixed = ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")
        if self.__initialized and name in fixed:
            raise ValueError(f"{name} attribute should not be set after {self.__class__.__name__} is initialized")
        super().__setattr__(name, value)

    @property
    def _auto_collation(self) -> bool:
        return self.batch_sampler is not None

    @property
    def _index_sampler(self) -> Any:
        return self.batch_sampler if self._auto_collation else self.sampler

    def __iter__(self) -> Iterator[Any]:
        if self.num_workers == 0:
            return _SingleProcessDataLoaderIter(self)
        if not self.persistent_workers:
            return _MultiProcessingDataLoaderIter(self)
        if self._iterator is None:
            self._iterator = _MultiProcessingDataLoaderIter(self)
        else:
            self._iterator._reset(self)
        return self._iterator  # type: ignore[no-any-return]

    def __len__(self) -> int:
        if not self._is_stream:
            return len(self._index_sampler)
        length = self._IterableDataset_len_called = len(self.dataset)  # type: ignore[arg-type]
        if self.batch_size is None:
            return length
        return length // self.batch_size if self.drop_last else math.ceil(length / self.batch_size)

    def check_worker_number_rationality(self) -> None:
        """Warns of more workers than processors that the program may use."""
        if not self.num_workers:
            return
        usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        if usable is None or self.num_workers > usable:
            warnings.warn(
                f"This DataLoader will create {self.num_workers} worker processes in total. Our suggested max number of worker in "
                f"current system is {usable}, which is smaller than what this DataLoader is going to create. Please be aware that "
                "excessive worker creation might get DataLoader running slow or even freeze, lower the worker number to avoid "
                "potential slowness/freeze if necessary.",
                stacklevel=3,
            )


def _checked_prefetch_factor(num_workers: int, prefetch_factor: int | None) -> int | None:
    if num_workers < 0:
        raise ValueError(
            "num_workers option should be non-negative; use num_workers=0 to disable multiprocessing."
        )
    if num_workers == 0 and prefetch_factor is not None:
        raise ValueError(
            "prefetch_factor option could only be specified in multiprocessing.let num_workers > 0 to enable multiprocessing, "
            "otherwise set prefetch_factor to None."
        )
    if num_workers > 0 and prefetch_factor is None:
        return 2
    if prefetch_factor is not None and prefetch_factor < 0:
        raise ValueError("prefetch_factor option should be non-negative")
    return prefetch_factor


def _check_stream(shuffle: Any, sampler: Any, batch_sampler: Any) -> None:
    """A stream has its own order."""
    given = [("shuffle", shuffle or None), ("sampler", sampler), ("batch_sampler", batch_sampler)]
    for name, value in given:
        if value is not None:
            raise ValueError(
                f"DataLoader with IterableDataset: expected unspecified {name} option, but got {name}={value}"
            )


def _check_order(batch_size: Any, shuffle: bool, sampler: Any, batch_sampler: Any, drop_last: bool) -> None:
    if sampler is not None and shuffle:
        raise ValueError("sampler option is mutually exclusive with shuffle")
    if batch_sampler is not None:
        if batch_size != 1 or shuffle or sampler is not None or drop_last:
            raise ValueError(
                "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last"
            )
    elif batch_size is None and drop_last:
        raise ValueError("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")


class _BaseDataLoaderIter:
    """One pass over a loader; its subclasses make batches themselves or have workers make them. They have the names of PyTorch's,
    by which a profiler shows how long a loop waits for each batch."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        self._is_stream = loader._is_stream
        self._dataset = loader.dataset
        self._index_sampler = loader._index_sampler
        self._num_workers = loader.num_workers
        self._pin_memory = self._pins(loader)
        self._sampler_iter = iter(self._index_sampler)
        # Drawn even without workers, so that what the program draws next is what it is in PyTorch.
        self._base_seed = _draws.seed(loader.generator)
        self._said_length = loader._IterableDataset_len_called
        self._num_yielded = 0
        self._profile_name = f"enumerate(DataLoader)#{self.__class__.__name__}.__next__"
        fetcher = StreamFetcher if loader._is_stream else MapFetcher
        self._make_fetcher = functools.partial(
            fetcher, auto_collation=loader._auto_collation, collate_fn=loader.collate_fn, drop_last=loader.drop_last
        )

    @staticmethod
    def _pins(loader: DataLoader[Any]) -> bool:
        if not loader.pin_memory:
            return False
        if loader.pin_memory_device:
            warnings.warn(
                "pin_memory_device is deprecated, the current accelerator will be used as the device,"
                f"ignore pin_memory_device='{loader.pin_memory_device}'.",
                stacklevel=4,
            )
        if _has_accelerator():
            return True
        warnings.warn(
            "'pin_memory' argument is set as true but no accelerator is found, then device pinned memory won't be used.",
            stacklevel=4,
        )
        return False

    def __iter__(self) -> _BaseDataLoaderIter:
        return self

    def __len__(self) -> int:
        return len(self._index_sampler)

    def __next__(self) -> Any:
        session = _plimsoll._profiler_range_begin(self._profile_name)
        try:
            return self._counted(self._next_batch())
        finally:
            if session is not None:
                _plimsoll._profiler_range_end(session)

    def _counted(self, batch: Any) -> Any:
        self._num_yielded += 1
        said = self._said_length
        if self._is_stream and said is not None and self._num_yielded > said:
            warnings.warn(
                f"Length of IterableDataset {self._dataset} was reported to be {said}(when accessing len(dataloader)), but "
                f"{self._num_yielded} samples have been fetched. ",
                stacklevel=3,
            )
        return batch

    def _next_batch(self) -> Any:
        raise NotImplementedError

    def __getstate__(self) -> Any:
        raise NotImplementedError("{} cannot be pickled", self.__class__.__name__)


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    """Makes each batch when it is asked for."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        super().__init__(loader)
        if loader.timeout != 0:
            raise AssertionError("a loader without workers requires timeout == 0")
        self._fetcher = self._make_fetcher(loader.dataset)

    def _next_batch(self) -> Any:
        batch = self._fetcher.fetch(next(self._sampler_iter))
        return pin_memory(batch) if self._pin_memory else batch


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """Has workers make batches ahead: each up to `prefetch_factor`, in turn."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        super().__init__(loader)
        if not loader.prefetch_factor:
            raise AssertionError("prefetch_factor must be greater than 0 for a loader with workers")
        self._ahead = loader.prefetch_factor * loader.num_workers
        self._in_order = loader.in_order
        self._timeout = loader.timeout
        self._persistent = loader.persistent_workers
        self._workers = self._started(loader)
        self._finalizer = weakref.finalize(self, self._workers.stop)
        self._begin()

    def _started(self, loader: DataLoader[Any]) -> Threads | Processes | Pinned:
        pin = pin_memory if self._pin_memory else None
        work = (loader.num_workers, loader.dataset, self._make_fetcher, self._base_seed, loader.worker_init_fn)
        if loader.multiprocessing_context == THREAD:
            return Threads(*work, pin)
        processes = Processes(*work, loader.multiprocessing_context)
        return Pinned(processes, pin) if pin else processes

    def _reset(self, loader: DataLoader[Any]) -> None:
        """Another pass with the same workers."""
        self._workers.begin_epoch()
        self._sampler_iter = iter(self._index_sampler)
        self._num_yielded = 0
        self._said_length = loader._IterableDataset_len_called
        self._begin()

    def _begin(self) -> None:
        #: The worker of each step that was asked for and not handed out.
        self._outstanding: dict[int, int] = {}
        self._asked_of = [0] * self._num_workers
        self._sent = 0
        self._next_worker = 0
        self._streaming = [True] * self._num_workers
        for _ in range(self._ahead):
            self._ask()

    def _ask(self) -> None:
        """Asks the next worker in turn for the next step, if there is one of each. Out of order, one that has enough to do is passed
        over."""
        most = self._ahead if self._in_order else self._ahead // max(sum(self._streaming), 1)
        for _ in range(self._num_workers):
            worker, self._next_worker = self._next_worker, (self._next_worker + 1) % self._num_workers
            if self._streaming[worker] and self._asked_of[worker] < most:
                break
        else:
            return
        try:
            keys = next(self._sampler_iter)
        except StopIteration:
            return
        self._workers.submit(worker, self._sent, keys)
        self._outstanding[self._sent] = worker
        self._asked_of[worker] += 1
        self._sent += 1

    def _next_batch(self) -> Any:
        while self._outstanding:
            # Steps are asked for in order, so the first is the next.
            wanted = next(iter(self._outstanding)) if self._in_order else None
            try:
                step, result = self._workers.take(wanted, self._timeout)
            except WorkerGone as gone:
                self._without(gone.workers)
                raise gone.told from gone.told.__cause__
            worker = self._outstanding.pop(step)
            self._asked_of[worker] -= 1
            if isinstance(result, StreamEnd):
                self._streaming[worker] = False
                self._ask()
                continue
            self._ask()
            if isinstance(result, Failure):
                result.reraise()
            return result
        if not self._persistent:
            self._finalizer()
        raise StopIteration

    def _without(self, workers: list[int]) -> None:
        """Goes on without workers that are gone, and without their steps, as PyTorch does."""
        for worker in workers:
            self._streaming[worker] = False
        self._outstanding = {step: worker for step, worker in self._outstanding.items() if worker not in workers}
