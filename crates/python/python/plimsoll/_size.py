"""Shapes: a tuple that counts its elements, and whose parts are shapes too. Rust makes one for each `shape`."""

from __future__ import annotations

import operator
from typing import Any, Iterable

from ._plimsoll import _namespace


def _whole(at: int, size: Any) -> int:
    try:
        return operator.index(size)
    except (TypeError, RuntimeError):
        kind = type(size).__name__
        raise TypeError(f"{_namespace()}.Size() takes an iterable of 'int' (item {at} is '{kind}')") from None


class Size(tuple[int, ...]):
    """The sizes of a tensor.

    >>> import plimsoll as pm
    >>> pm.zeros(2, 3).shape.numel()
    6
    """

    __slots__ = ()

    def __new__(cls, sizes: Iterable[Any] = ()) -> Size:
        """Of whole numbers, and of what stands for one."""
        if type(sizes) is not Size:
            sizes = [_whole(at, size) for at, size in enumerate(sizes)]
        return tuple.__new__(cls, sizes)

    def numel(self) -> int:
        """How many elements a tensor of this shape has."""
        count = 1
        for size in self:
            count *= size
        return count

    def __repr__(self) -> str:
        return f"{_namespace()}.Size([{', '.join(map(str, self))}])"

    __str__ = __repr__

    def __getitem__(self, index: Any) -> Any:
        part = tuple.__getitem__(self, index)
        return Size(part) if isinstance(index, slice) else part

    def __add__(self, other: Any) -> Any:
        return Size(tuple.__add__(self, other)) if isinstance(other, tuple) else NotImplemented

    def __radd__(self, other: Any) -> Any:
        return Size(other + tuple(self)) if isinstance(other, tuple) else NotImplemented

    def __mul__(self, times: Any) -> Any:
        return Size(tuple.__mul__(self, times))

    __rmul__ = __mul__

    def __reduce__(self) -> tuple[type[Size], tuple[Iterable[int]]]:
        return Size, (tuple(self),)
