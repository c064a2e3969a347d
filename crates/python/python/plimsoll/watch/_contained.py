"""Which containers hold which storages, as one census has seen it: for those that are judged by what they have, look by look
(`_unseen.py`, `_copied.py`), and not by the lines that make it."""

from __future__ import annotations

from typing import Any, NamedTuple

from . import _kinds as kinds
from ._census import Census
from ._findings import Owner, as_container, container_of, holder_of
from ._holders import Hold
from ._naming import key_of

# What belongs to a model, whatever container its names are in.
_BELONGING = {kinds.PARAMETER, kinds.OPTIMIZER_STATE, kinds.GRADIENT_OF_PARAMETER}


class Contained(NamedTuple):
    """What one container has."""

    # Of the container: a dictionary of a few keys may have more by the next look.
    owner: Owner
    keys: list[int]


def contained(census: Census) -> dict[Any, Contained]:
    """By what tells a container from others."""
    found: dict[Any, Contained] = {}
    for key, owner in census.owners.items():
        if owner.kind in _BELONGING or not _may_gain(owner.hold):
            continue
        edge = key_of(holder_of(owner.hold))
        if edge not in found:
            found[edge] = Contained(owner._replace(hold=as_container(owner.hold)), [])
        found[edge].keys.append(key)
    return found


def _may_gain(hold: Hold) -> bool:
    """Whether a container is on the path, other than those of modules by their names."""
    items = [step for step in hold.path() if step.how == "item"]
    is_item = any(item.parent is None or not item.parent.is_of("module") for item in items)
    return is_item or container_of(hold) is not None
