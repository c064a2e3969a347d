"""What a worker knows of itself: `get_worker_info`. A worker process has one answer, worker threads have each their own."""

from __future__ import annotations

import random
import threading
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class _RNG:
    """A worker thread's own random numbers: the process has one state for all its threads, and they share the process."""

    random_generator: random.Random
    torch_generator: Any
    numpy_generator: Any = None


@dataclass(frozen=True)
class WorkerInfo:
    """The worker that asks: its number, how many there are, its seed (`base_seed` and its number) and its copy of the dataset; a
    thread has random numbers of its own besides."""

    id: int
    num_workers: int
    seed: int
    dataset: Any
    rng: _RNG | None = None
    worker_method: str | None = "multiprocessing"


_this_thread = threading.local()
_this_process: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """The worker that asks; None outside of workers."""
    return getattr(_this_thread, "info", _this_process)


def set_worker_info(info: WorkerInfo | None) -> None:
    """Makes this thread a worker."""
    _this_thread.info = info


def set_process_worker_info(info: WorkerInfo) -> None:
    """Makes this process a worker."""
    global _this_process
    _this_process = info
