"""What fills the memory when a program ends because there is no more: live bytes by holder, kind and line, the
largest first. The frames that the error went through are still there with it, and are read like running ones."""

from __future__ import annotations

import collections
from typing import Any, NamedTuple

import torch

from ._census import Census
from ._findings import holder_of, words_of
from ._naming import key_of

# Holders that are told.
MOST_HOLDERS = 6


class Filling(NamedTuple):
    """What one holder keeps."""

    bytes: int
    storages: int
    kind: str
    line: str | None
    held_by: str


def is_out_of_memory(error: BaseException | None) -> bool:
    """The device's error, the host allocator's, which has no class of its own, or Python's."""
    if isinstance(error, (torch.OutOfMemoryError, MemoryError)):
        return True
    return isinstance(error, RuntimeError) and "can't allocate memory" in str(error)


def fillings(session: Any, error: BaseException) -> list[Filling]:
    """Never fails: an error here must not hide the program's."""
    try:
        census = Census(session.own_ids(), traceback=error.__traceback__, loops=session.steps.loaders())
    except Exception:
        return []
    by_holder: dict[Any, list[int]] = collections.defaultdict(list)
    for key, owner in census.owners.items():
        by_holder[key_of(holder_of(owner.hold))].append(key)
    found = []
    for keys in by_holder.values():
        largest = max(keys, key=census.bytes_of.__getitem__)
        owner = census.owners[largest]
        lines = collections.Counter(
            str(session.making.rows[key].place) for key in keys if key in session.making.rows
        )
        line = lines.most_common(1)[0][0] if lines else None
        total = sum(census.bytes_of[key] for key in keys)
        found.append(Filling(total, len(keys), owner.kind, line, words_of(owner.hold)))
    return sorted(found, key=lambda one: -one.bytes)[:MOST_HOLDERS]
