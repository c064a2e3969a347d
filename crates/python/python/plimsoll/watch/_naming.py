"""From lines that grow to findings: whose each storage is (`_census.py`), gathered by holder, with kind, cause and
remedy."""

from __future__ import annotations

import collections
from typing import Any, Iterable

from . import _kinds as kinds
from ._census import Census, Owner
from ._findings import Finding, as_container, container_of, holder_of, steps_of, why, words_of
from ._growth import TOLERATED_BYTES, VERDICT_STEPS, Suspect
from ._holders import Hold
from ._nodes import GrowingNodes
from ._places import Place

# Further holders of the same bytes that are looked for.
MOST_OTHERS = 2
# Lines that a finding names.
MOST_LINES = 4


class Group:
    """What one holder keeps: bytes a step by line and by kind."""

    def __init__(self) -> None:
        self.lines: collections.Counter[Place | None] = collections.Counter()
        self.kinds: collections.Counter[str] = collections.Counter()
        self.phases: collections.Counter[str] = collections.Counter()
        self.owners: dict[str, Owner] = {}
        self.keys: set[int] = set()
        self._names: set[str] = set()
        self.objects_per_step = 0.0
        self.is_judged_enough = False

    def add(self, suspect: Suspect, row: Any, owner: Owner) -> None:
        kind = owner.kind
        if kind == kinds.VALUE and suspect.place is not None and suspect.place.backward:
            kind = kinds.KEPT_GRADIENT
        each = row.bytes / suspect.judged_steps
        self.lines[suspect.place] += each
        self.kinds[kind] += each
        self.phases[row.phase] += each
        self.owners.setdefault(kind, owner)
        self._names.add(next((step.name for step in owner.hold.path() if step.how == "item"), ""))
        self.keys.add(row.key)
        self.objects_per_step += 1 / suspect.judged_steps
        self.is_judged_enough = self.is_judged_enough or suspect.judged_steps >= VERDICT_STEPS

    @property
    def bytes_per_step(self) -> float:
        return sum(self.lines.values())

    def places(self) -> list[Place]:
        """The lines with the most bytes; several operations of one line are one."""
        by_line: collections.Counter[tuple[str, int]] = collections.Counter()
        places: dict[tuple[str, int], Place] = {}
        for place, each in self.lines.items():
            if place is not None:
                by_line[place.file, place.line] += each
                places.setdefault((place.file, place.line), place)
        return [places[line] for line, _ in by_line.most_common(MOST_LINES)]

    def owner(self) -> tuple[str, Owner]:
        """The kind that has most of the bytes, and who holds it."""
        kind = self.kinds.most_common(1)[0][0]
        owner = self.owners[kind]
        return kind, owner._replace(hold=as_container(owner.hold)) if len(self._names) > 2 else owner


def key_of(hold: Hold) -> Any:
    """What is told together: all that one container holds, or one name."""
    steps = hold.edge()
    at = next((index for index, step in enumerate(steps) if step[0] in ("entry", "key", "cache")), None)
    return steps[:at] if at is not None else steps


def grouped(
    suspects: Iterable[Suspect], census: Census, excluded: set[int]
) -> tuple[dict[Any, Group], list[tuple[Suspect, Any]]]:
    """Groups by holder, and the rows that no name leads to; without the excluded storages."""
    groups: dict[Any, Group] = collections.defaultdict(Group)
    unknown = []
    for suspect in suspects:
        for row in suspect.rows:
            if row.key in excluded:
                continue
            owner = census.owners.get(row.key)
            if owner is not None:
                groups[key_of(holder_of(owner.hold))].add(suspect, row, owner)
            elif row.is_alive():
                unknown.append((suspect, row))
    return groups, unknown


def finding_of(group: Group, others: list[Hold], step: int) -> Finding | None:
    """None if it is too little, or no leak by its kind."""
    if group.bytes_per_step < TOLERATED_BYTES:
        return None
    kind, owner = group.owner()
    if set(group.kinds) <= {kinds.OPTIMIZER_STATE, kinds.GRADIENT_OF_PARAMETER} and not _is_made_anew(owner.hold):
        return None
    lines = group.places()
    cause, remedy = why(kind, owner.hold, owner.is_scalar, owner.has_graph)
    return Finding(
        bytes_per_step=group.bytes_per_step,
        objects_per_step=group.objects_per_step,
        lines=[str(place) for place in lines],
        files=[f"{place.file}:{place.line}" for place in lines],
        kind=kind,
        held_by=words_of(owner.hold),
        also_held_by=[(words_of(hold), steps_of(hold)) for hold in others],
        path=steps_of(owner.hold),
        cause=cause,
        remedy=remedy,
        is_verdict=group.is_judged_enough,
        is_note=bound_of(owner.hold) is not None,
        seen_at_step=step,
        phase=group.phases.most_common(1)[0][0],
    )


def nodes_finding(growing: GrowingNodes, step: int) -> Finding:
    owner = growing.owner
    cause, remedy = why(kinds.NODES, owner.hold, owner.is_scalar)
    line = growing.line
    return Finding(
        bytes_per_step=growing.bytes_per_step,
        objects_per_step=growing.nodes_per_step,
        lines=[str(line)] if line is not None else [],
        files=[f"{line.file}:{line.line}"] if line is not None else [],
        kind=kinds.NODES,
        held_by=words_of(owner.hold),
        also_held_by=[],
        path=steps_of(owner.hold),
        cause=cause,
        remedy=remedy,
        is_verdict=growing.is_steady,
        is_note=bound_of(owner.hold) is not None,
        seen_at_step=step,
    )


def unseen_finding(growing: Any, step: int) -> Finding:
    """Of a holder whose gains no window saw being made: the line is not known."""
    owner = growing.owner
    cause, remedy = why(owner.kind, owner.hold, owner.is_scalar, owner.has_graph)
    return Finding(
        bytes_per_step=growing.bytes_per_step,
        objects_per_step=growing.storages_per_step,
        lines=[],
        kind=owner.kind,
        held_by=words_of(owner.hold),
        also_held_by=[],
        path=steps_of(owner.hold),
        cause=cause,
        remedy=remedy,
        is_verdict=growing.is_steady,
        is_note=bound_of(owner.hold) is not None,
        seen_at_step=step,
    )


def others_of(group: Group, look: Any) -> list[Hold]:
    """Who else holds the same bytes: what a census without the named holder still finds. `look(skip, edges)` takes
    one."""
    skip: set[int] = set()
    edges: set[Any] = set()
    found: list[Hold] = []
    _, owner = group.owner()
    for _ in range(MOST_OTHERS):
        holder = holder_of(owner.hold)
        container = container_of(holder)
        if container is not None:
            skip.add(container.held)
        else:
            edges.add(holder.edge())
        census = look(skip, edges)
        left = [census.owners[key] for key in group.keys if key in census.owners]
        if len(left) * 2 < len(group.keys):
            break
        owner = left[0]
        found.append(owner.hold)
    return found


def bound_of(hold: Hold) -> int | None:
    """The bound of a container on the path: it cannot grow for ever."""
    return next((step.most for step in hold.path() if step.most is not None), None)


def _is_made_anew(hold: Hold) -> bool:
    """Whether the optimizer or model that has this state is one of several that are kept: each parameter has one
    state and one gradient, which may come late and is no leak."""
    for step in hold.path():
        if step.how == "attribute" and step.name in ("state", "_parameters", "_modules", "param_groups"):
            return False
        if step.how in ("entry", "closure", "frame", "cache"):
            return True
    return False
