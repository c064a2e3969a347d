"""Which way attention is computed. There is one here, so a choice is noted, and one that leaves it out is refused."""

from __future__ import annotations

import contextlib
import enum
from typing import Iterable, Iterator

__all__ = ["SDPBackend", "sdpa_kernel"]


class SDPBackend(enum.Enum):
    """PyTorch's ways to compute attention."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


@contextlib.contextmanager
def sdpa_kernel(backends: SDPBackend | Iterable[SDPBackend], set_priority: bool = False) -> Iterator[None]:
    """PyTorch chooses among these ways inside. All of them give the same numbers up to rounding, and so does the one
    that is here; choosing none is refused, as there."""
    chosen = [backends] if isinstance(backends, SDPBackend) else list(backends)
    if not chosen or not all(isinstance(one, SDPBackend) for one in chosen):
        raise AssertionError("sdpa_kernel: name one or several of SDPBackend")
    yield
