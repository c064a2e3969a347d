"""Objects that refer to each other and hold tensors until Python's collector comes. The collector runs once or twice
in a watched program, only if something grows that no name leads to and the program has not switched it off: what it
frees was a cycle. Where it is off, a few of the tensors are followed back to what holds them instead."""

from __future__ import annotations

import contextlib
import gc
import types
import weakref
from typing import TYPE_CHECKING, Any, Callable, Iterable, Iterator

if TYPE_CHECKING:
    from ._making import Row

# How far a cycle is followed back from a tensor for its description.
LONGEST_CYCLE = 32
# Lines of which a storage is followed back where the collector is off.
MOST_FOLLOWED = 4
# Tensors of one storage that are followed back.
MOST_TRIED = 8
A_CYCLE = "a reference cycle"


@contextlib.contextmanager
def without_collections() -> Iterator[None]:
    """A block in which the collector does not come by itself: what a look makes would call it, and where a program has many objects
    it takes longer than the look."""
    before = gc.get_threshold()
    try:
        gc.set_threshold(0, *before[1:])
        yield
    finally:
        # What the program sets meanwhile stays.
        if gc.get_threshold()[0] == 0:
            gc.set_threshold(*before)


def freed_by_collector(rows: Iterable[Row]) -> tuple[list[Row], str]:
    """Collects, and gives back the rows that this freed with a description of what held them."""
    before = [row for row in rows if row.is_alive()]
    said = describe({row.key for row in before}, _storage_keys())
    gc.collect()
    return [row for row in before if not row.is_alive()], said


def held_by_cycles(rows: Iterable[Any], key_of: Callable[[Any], Any] | None = None) -> tuple[list[Any], str]:
    """The same without a collection: of each line one storage is followed, and stands for those of its line. `key_of` tells a
    tensor's storage, PyTorch's unless it is given."""
    key_of = key_of or _storage_keys()
    by_line: dict[Any, list[Any]] = {}
    for row in rows:
        if row.is_alive():
            by_line.setdefault(row.place, []).append(row)
    held: list[Any] = []
    said = A_CYCLE
    for of in list(by_line.values())[:MOST_FOLLOWED]:
        words = describe({row.key for row in of}, key_of)
        if words != A_CYCLE:
            held += of
            said = words
    return held, said


def _storage_keys() -> Callable[[Any], Any]:
    """What tells a tensor's storage, and None of what is no tensor. PyTorch's package is asked for only here: Plimsoll's programs
    have cycles too."""
    import torch

    from ._making import storage_of

    def key_of(value: Any) -> Any:
        storage = storage_of(value) if issubclass(type(value), torch.Tensor) else None
        return storage._cdata if storage is not None else None

    return key_of


def describe(keys: set[Any], key_of: Callable[[Any], Any]) -> str:
    """The types on the way from a tensor, whose storage `key_of` tells, back to something already met. Without references kept
    afterwards."""
    # Of one storage all: a view may be in the cycle, and what it is a view of nowhere in Python. Weakly: what holds one
    # is asked for.
    tensors: list[weakref.ref[Any]] = []
    wanted = None
    for candidate in gc.get_objects():
        key = key_of(candidate)
        if key is not None and (key == wanted or (wanted is None and key in keys)) and len(tensors) < MOST_TRIED:
            wanted = key
            tensors.append(weakref.ref(candidate))
    candidate = None
    said = A_CYCLE
    for weak in tensors:
        said = _way_back(weak)
        if said != A_CYCLE:
            break
    return said


def _way_back(weak: weakref.ref[Any]) -> str:
    met: list[Any] = [weak()]
    if met[0] is None:
        # Another thread has let it go.
        return A_CYCLE
    names: list[str] = []
    is_closed = False
    try:
        while len(met) < LONGEST_CYCLE:
            holder = _referrer(met)
            if holder is None:
                break
            # Not by a generator: its variable for the holder would be one that refers to it.
            is_closed = _has_met(met, holder)
            if is_closed:
                break
            met.append(holder)
            names.append(_name(holder, met[-2]))
        names = [name for name in names if name]
        return f"{A_CYCLE}: " + " <- ".join(names) if names and is_closed else A_CYCLE
    finally:
        met.clear()


def _has_met(met: list[Any], holder: Any) -> bool:
    for one in met:
        if one is holder:
            return True
    return False


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
