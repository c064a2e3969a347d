"""The context manager that sends a thread's allocations to a pool of their own."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from ._plimsoll import MemPool, _PoolScope


@contextlib.contextmanager
def use_mem_pool(pool: MemPool) -> Iterator[None]:
    """What this thread allocates inside on the pool's device comes from the pool, and goes back to it."""
    scope = _PoolScope(pool)
    try:
        yield
    finally:
        scope.leave()
