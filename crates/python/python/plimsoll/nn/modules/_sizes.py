"""Arguments that are one number or one for each dimension."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Union

Ints = Union[int, Sequence[int]]
Floats = Union[float, Sequence[float]]


def _times(count: int) -> Callable[[Any], tuple[Any, ...]]:
    def each(value: Any) -> tuple[Any, ...]:
        return tuple(value) if isinstance(value, Iterable) else (value,) * count

    return each


single, pair, triple, quadruple, sextuple = _times(1), _times(2), _times(3), _times(4), _times(6)


def both_ends(padding: tuple[int, ...]) -> tuple[int, ...]:
    """A padding for each dimension, as `pad` takes it: the last dimension first, before and after."""
    return tuple(size for size in reversed(padding) for _ in range(2))
