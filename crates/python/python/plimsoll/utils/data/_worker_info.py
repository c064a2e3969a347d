"""What a worker knows of itself: `get_worker_info`. Workers are threads, so that each has its own answer."""

from __future__ import annotations

import random
import threading
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class _RNG:
    """A worker's own random numbers: the process has one state for all its threads, and workers share the process."""

    random_generator: random.Random
    torch_generator: Any
    numpy_generator: Any = None


@dataclass(frozen=True)
class WorkerInfo:
    """The worker that asks: its number, how many there are, its seed (`base_seed` and its number), its copy of the dataset, and
    random numbers of its own."""

    id: int
    num_workers: int
    seed: int
    dataset: Any
    rng: _RNG | None = None
    worker_method: str | None = "thread"


_this_thread = threading.local()


def get_worker_info() -> WorkerInfo | None:
    """The worker that asks; None outside of workers."""
    return getattr(_this_thread, "info", None)


def set_worker_info(info: WorkerInfo | None) -> None:
    _this_thread.info = info
