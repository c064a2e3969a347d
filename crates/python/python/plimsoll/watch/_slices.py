"""Which storages are kept by parts of them alone, so that copies of the parts would free them. Where the parts that lead to
one are most of it (rows pushed one by one, all gates of a layer), copies would free nothing: what is kept is the value. It
knows no tensors."""

from __future__ import annotations

from typing import Any, NamedTuple

from . import _kinds as kinds
from ._findings import Owner


class Part(NamedTuple):
    """What of a storage a tensor is: where it begins, and the bytes of its elements, which lie side by side or do not."""

    begin: int
    bytes: int
    is_dense: bool


class Slices:
    """Goes beside the owners of a census: is told every tensor that leads to a storage."""

    def __init__(self, owners: dict[Any, Owner]) -> None:
        self._owners = owners
        # Of storages of which only parts were met.
        self._parts: dict[Any, set[Part]] = {}

    def first(self, key: Any, owner: Owner, part: Part, nbytes: int) -> Owner:
        """What a storage is told as that `part` leads to, the first that was met."""
        if owner.kind != kinds.VALUE or part.bytes * 2 > nbytes:
            return owner
        self._parts[key] = {part}
        return owner._replace(kind=kinds.SLICE)

    def one_more(self, key: Any, part: Part, nbytes: int) -> None:
        """Another part leads to it."""
        parts = self._parts.get(key)
        if parts is None:
            return
        parts.add(part)
        if _covered(parts) * 2 > nbytes:
            del self._parts[key]
            self._owners[key] = self._owners[key]._replace(kind=kinds.VALUE)


def _covered(parts: set[Part]) -> int:
    """The bytes that parts are together. Where dense ones overlap they count once; others are taken for parts beside each other, as
    columns and gates are."""
    covered, end = sum(part.bytes for part in parts if not part.is_dense), 0
    for part in sorted(part for part in parts if part.is_dense):
        covered += max(part.begin + part.bytes - max(part.begin, end), 0)
        end = max(end, part.begin + part.bytes)
    return covered
