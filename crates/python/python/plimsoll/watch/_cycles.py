"""Objects that refer to each other and hold tensors until Python's collector comes. The collector runs once or twice
in a watched program, only if something grows that no name leads to and the program has not switched it off: what it
frees was a cycle."""

from __future__ import annotations

import gc
import types
from typing import Any, Iterable

import torch

from ._making import Row, storage_of

# How far a cycle is followed back from a tensor for its description.
LONGEST_CYCLE = 12


def freed_by_collector(rows: Iterable[Row]) -> tuple[list[Row], str]:
    """Collects, and gives back the rows that this freed with a description of what held them."""
    before = [row for row in rows if row.is_alive()]
    said = _describe({row.key for row in before})
    gc.collect()
    return [row for row in before if not row.is_alive()], said


def _describe(keys: set[int]) -> str:
    """The types on the way from a tensor back to something already met. Without references kept afterwards."""
    tensor = None
    for candidate in gc.get_objects():
        if issubclass(type(candidate), torch.Tensor):
            storage = storage_of(candidate)
            if storage is not None and storage._cdata in keys:
                tensor = candidate
                break
    candidate = None
    if tensor is None:
        return "a reference cycle"
    met: list[Any] = [tensor]
    names: list[str] = []
    try:
        while len(met) < LONGEST_CYCLE:
            holder = _referrer(met)
            if holder is None:
                break
            if any(holder is one for one in met):
                break
            met.append(holder)
            names.append(_name(holder, met[-2]))
        names = [name for name in names if name]
        return "a reference cycle: " + " <- ".join(names) if names else "a reference cycle"
    finally:
        met.clear()
        tensor = None


def _referrer(met: list[Any]) -> Any:
    target = met[-1]
    gathered = gc.get_referrers(target)
    for holder in gathered:
        kind = type(holder)
        if holder is met or holder is gathered or kind is types.FrameType or issubclass(kind, types.ModuleType):
            continue
        if kind is list and holder and holder[0] is met[0] and holder is not target and len(holder) == len(met):
            continue
        return holder
    return None


def _name(holder: Any, held: Any) -> str:
    kind = type(holder)
    if kind is dict:
        return next((f"[{key!r:.30}]" for key, value in dict.items(holder) if value is held), "dict")
    if kind is types.CellType:
        return "a closure's variable"
    if kind is types.FunctionType:
        return f"{holder.__code__.co_name}()"
    return kind.__name__
