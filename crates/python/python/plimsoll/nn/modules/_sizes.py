"""Arguments that are one number or one for each dimension."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any


def _times(count: int) -> Callable[[Any], tuple[Any, ...]]:
    def each(value: Any) -> tuple[Any, ...]:
        return tuple(value) if isinstance(value, Iterable) else (value,) * count

    return each


single, pair, triple = _times(1), _times(2), _times(3)


def both_ends(padding: tuple[int, ...]) -> tuple[int, ...]:
    """A padding for each dimension, as `pad` takes it: the last dimension first, before and after."""
    return tuple(size for size in reversed(padding) for _ in range(2))
