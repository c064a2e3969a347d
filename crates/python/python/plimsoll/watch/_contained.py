"""Which containers hold which storages, as one census has seen it: for those that are judged by what they have, look by look
(`_unseen.py`, `_copied.py`), and not by the lines that make it."""

from __future__ import annotations

from typing import Any, NamedTuple

from . import _kinds as kinds
from ._census import Census
from ._findings import Owner, as_container, container_of, holder_of, keys_of
from ._holders import Hold
from ._naming import key_of

# What belongs to a model, whatever container its names are in.
_BELONGING = {kinds.PARAMETER, kinds.OPTIMIZER_STATE, kinds.GRADIENT_OF_PARAMETER}


class Contained(NamedTuple):
    """What one container has."""

    owner: Owner
    keys: list[int]


def contained(census: Census) -> dict[Any, Contained]:
    """By what tells a container from others."""
    found: dict[Any, Contained] = {}
    edges: dict[int, Any] = {}
    names: dict[Any, set[tuple[str, ...]]] = {}
    for key, owner in census.owners.items():
        if owner.kind in _BELONGING or not _may_gain(owner.hold):
            continue
        # Entries of one container share a hold.
        edge = edges.get(id(owner.hold))
        if edge is None:
            edge = edges[id(owner.hold)] = key_of(holder_of(owner.hold))
            names.setdefault(edge, set()).add(keys_of(owner.hold))
        found.setdefault(edge, Contained(owner, [])).keys.append(key)
    return {edge: one._replace(owner=_of_all(one.owner, names[edge])) for edge, one in found.items()}


def _of_all(owner: Owner, names: set[tuple[str, ...]]) -> Owner:
    """Told as one of many keys, where there are several. What a program has under few names may have more by the next look."""
    is_named = any(step.how == "item" and not step.is_child for step in owner.hold.path())
    return owner._replace(hold=as_container(owner.hold, names if len(names) > 1 or not is_named else None))


def _may_gain(hold: Hold) -> bool:
    """Whether a container is on the path, other than those of modules by their names."""
    items = [step for step in hold.path() if step.how == "item"]
    is_item = any(item.parent is None or not item.parent.is_of("module") for item in items)
    return is_item or container_of(hold) is not None
