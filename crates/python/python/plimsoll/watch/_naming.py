"""From lines that grow to findings: whose each storage is (`_census.py`), gathered by holder, with kind, cause and
remedy. It needs no PyTorch: `plimsoll.LeakWatch` names what grows in Plimsoll's own programs by it."""

from __future__ import annotations

import collections
from typing import Any, Callable, Iterable, NamedTuple

from . import _kinds as kinds
from ._findings import (
    HOLDER_NOT_KNOWN,
    COPIED,
    LONGER,
    NOT_LOOKED,
    Finding,
    Owner,
    as_container,
    entries_of,
    holder_of,
    is_behind_gradient,
    is_kept_in_container,
    is_of_graph,
    keys_of,
    steps_of,
    why,
    words_of,
)
from ._growth import TOLERATED_BYTES, VERDICT_STEPS, Suspect
from ._holders import Hold
from ._nodes import GrowingNodes
from ._places import Place

# Holders that are named where a line is spread over several.
MOST_SHARED = 8
# Lines that a finding names.
MOST_LINES = 4
# Walks through all that was imported: each takes long.
MOST_LIBRARY_WALKS = 2


class Group:
    """What one holder keeps: bytes a step by line and by kind."""

    def __init__(self) -> None:
        self.lines: collections.Counter[Place | None] = collections.Counter()
        self.kinds: collections.Counter[str] = collections.Counter()
        self.phases: collections.Counter[str] = collections.Counter()
        self.owners: dict[str, Owner] = {}
        self.keys: set[Any] = set()
        # In which what it keeps was made.
        self._steps: set[int] = set()
        # The first and last of them, for each key of a dictionary.
        self.steps_by_key: dict[tuple[str, ...], tuple[int, int]] = {}
        self._names: set[tuple[str, ...]] = set()
        self.shared_with: list[Hold] = []
        self.objects_per_step = 0.0
        self.is_judged_enough = False
        # The first that a gradient's graph holds.
        self.behind_gradient: Owner | None = None

    def add(self, suspect: Suspect, row: Any, owner: Owner) -> None:
        kind = owner.kind
        if kind == kinds.VALUE and suspect.place is not None and suspect.place.backward:
            kind = kinds.KEPT_GRADIENT
        each = row.bytes / suspect.judged_steps
        self.lines[suspect.place] += each
        self.kinds[kind] += each
        self.phases[row.phase] += each
        self.owners.setdefault(kind, owner)
        if self.behind_gradient is None and is_behind_gradient(owner.hold):
            self.behind_gradient = owner
        names = keys_of(owner.hold)
        self._names.add(names)
        first, last = self.steps_by_key.get(names, (row.step, row.step))
        self.steps_by_key[names] = min(first, row.step), max(last, row.step)
        self.keys.add(row.key)
        self._steps.add(row.step)
        self.objects_per_step += 1 / suspect.judged_steps
        self.is_judged_enough = self.is_judged_enough or suspect.judged_steps >= VERDICT_STEPS

    def take_in(self, other: Group, have_same_names: bool = False) -> None:
        """What another holds is told with this from now on, and the other as one more holder; or as one more key on a path of the
        same names."""
        self.steps_by_key = {**other.steps_by_key, **self.steps_by_key}
        self.shared_with.append(other.owner()[1].hold)
        self.lines.update(other.lines)
        self.kinds.update(other.kinds)
        self.phases.update(other.phases)
        self.owners = {**other.owners, **self.owners}
        self.keys |= other.keys
        self._steps |= other._steps
        if have_same_names:
            self._names |= other._names
        self.objects_per_step += other.objects_per_step
        self.is_judged_enough = self.is_judged_enough or other.is_judged_enough

    @property
    def belongs(self) -> bool:
        """Whether it is what each parameter has one of."""
        return set(self.kinds) <= {kinds.OPTIMIZER_STATE, kinds.GRADIENT_OF_PARAMETER}

    def is_carried(self, hold: Hold) -> bool:
        """Whether it was made in more steps than its containers have entries."""
        return len(self._steps) > (entries_of(hold) or 0)

    @property
    def bytes_per_step(self) -> float:
        # Of whole bytes divided by steps and added again: six sixths are one.
        return round(sum(self.lines.values()), 3)

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
        """The kind that has most of the bytes, and who holds it. Parameters have gradients of their own size, which are told by
        them."""
        kind = max(self.kinds, key=lambda one: (round(self.kinds[one]), one != kinds.GRADIENT_OF_PARAMETER))
        owner = self.owners[kind]
        return kind, owner._replace(hold=as_container(owner.hold, self._names)) if len(self._names) > 1 else owner


def key_of(hold: Hold) -> Any:
    """What is told together: all that one container or the frames of one exception hold, or one name."""
    steps = hold.edge()
    at = next((index for index, step in enumerate(steps) if step[0] in ("entry", "key", "cache", "frame")), None)
    return steps[:at] if at is not None else steps


def grouped(
    suspects: Iterable[Suspect], census: Any, excluded: set[Any]
) -> tuple[dict[Any, Group], list[tuple[Suspect, Any]]]:
    """Groups by holder, and the rows that no name leads to; without the excluded storages."""
    groups: dict[Any, Group] = collections.defaultdict(Group)
    unknown = []
    for suspect in suspects:
        for row in suspect.rows:
            # Another storage may have the key of one that is gone.
            if row.key in excluded or not row.is_alive():
                continue
            owner = census.owners.get(row.key)
            if owner is not None:
                groups[key_of(holder_of(owner.hold))].add(suspect, row, owner)
            else:
                unknown.append((suspect, row))
    return groups, unknown


def join(groups: dict[Any, Group], suspects: Iterable[Suspect]) -> None:
    """Joins what is told together although its holders differ."""
    _join_gradients(groups)
    _join_spread(groups, suspects)
    _join_children(groups)


def _join_gradients(groups: dict[Any, Group]) -> None:
    """What the graphs behind the gradients of modules hold is told together, with the gradient that holds most: they share it, and
    each parameter has one. What a container of the program's keeps is told apart."""
    holds = {key: group.owner()[1].hold for key, group in groups.items()}
    parts = [key for key, hold in holds.items() if is_behind_gradient(hold) and not is_kept_in_container(hold)]
    parts.sort(key=lambda key: -groups[key].bytes_per_step)
    for other in parts[1:]:
        groups[parts[0]].take_in(groups.pop(other), have_same_names=True)


def _join_children(groups: dict[Any, Group]) -> None:
    """Modules within one model of which none keeps enough to be told are told together, if all keep enough."""
    by_model: dict[Any, list[Any]] = collections.defaultdict(list)
    for key, group in groups.items():
        if group.bytes_per_step < TOLERATED_BYTES and not group.belongs:
            path = group.owner()[1].hold.path()
            child = next((step for step in path if step.is_child), None)
            if child is not None and child.parent is not None:
                by_model[child.parent.edge()].append(key)
    for keys in by_model.values():
        keys.sort(key=lambda key: -groups[key].bytes_per_step)
        if len(keys) > 1 and sum(groups[key].bytes_per_step for key in keys) >= TOLERATED_BYTES:
            for other in keys[1:]:
                groups[keys[0]].take_in(groups.pop(other))


def _join_spread(groups: dict[Any, Group], suspects: Iterable[Suspect]) -> None:
    """A line that leaves enough behind, of which no holder has enough alone, is told with the holder that has most: two readers
    of one queue share what they hold, each a part."""
    told = {place for group in groups.values() if group.bytes_per_step >= TOLERATED_BYTES for place in group.lines}
    for suspect in suspects:
        parts = [key for key, group in groups.items() if suspect.place in group.lines and not group.belongs]
        if suspect.place in told or len(parts) < 2:
            continue
        parts.sort(key=lambda key: -groups[key].bytes_per_step)
        if sum(groups[key].lines[suspect.place] for key in parts) >= TOLERATED_BYTES:
            for other in parts[1:]:
                groups[parts[0]].take_in(groups.pop(other))
            told |= set(groups[parts[0]].lines)


def finding_of(group: Group, others: list[Hold], step: int) -> Finding | None:
    """None if it is too little, or no leak by its kind."""
    if group.bytes_per_step < TOLERATED_BYTES:
        return None
    kind, owner = group.owner()
    whole, others = _with_keys(owner.hold, others)
    owner = owner._replace(hold=whole)
    if group.belongs and not _is_made_anew(group.owners[kind].hold):
        return None
    lines = group.places()
    cause, remedy = why(kind, owner.hold, owner.is_scalar, owner.has_graph, group.is_carried(owner.hold))
    if is_of_graph(cause) and group.behind_gradient is not None:
        # To let go of the tensors is not enough where gradients of inputs lead back to them.
        cause, remedy = why(kind, group.behind_gradient.hold, False)
    return Finding(
        bytes_per_step=group.bytes_per_step,
        objects_per_step=group.objects_per_step,
        lines=[str(place) for place in lines],
        files=[f"{place.file}:{place.line}" for place in lines],
        kind=kind,
        held_by=words_of(owner.hold),
        also_held_by=_also(group.shared_with, others),
        path=steps_of(owner.hold),
        cause=cause,
        remedy=remedy,
        is_verdict=group.is_judged_enough,
        is_note=bound_of(owner.hold) is not None,
        seen_at_step=step,
        phase=group.phases.most_common(1)[0][0],
        steps_by_key=list(group.steps_by_key.values()),
    )


def _also(shared: list[Hold], others: list[Hold]) -> list[tuple[str, list[dict[str, Any]]]]:
    """Those that are told as further holders: of many that share the bytes the first, and how many more there are."""
    told = [(words_of(hold), steps_of(hold)) for hold in (*shared[:MOST_SHARED], *others)]
    left = len(shared) - MOST_SHARED
    return [*told, (f"{left} more holders", [])] if left > 0 else told


def nodes_finding(growing: GrowingNodes, others: list[Hold], step: int) -> Finding:
    of_holder = _of_holder(growing, growing.owner, kinds.NODES, growing.nodes_per_step, step, growing.is_carried)
    finding = _at(of_holder, growing.line)
    finding.also_held_by = [(words_of(hold), steps_of(hold)) for hold in others]
    return finding


def key_below(finding: Finding) -> Any:
    """The key of a dictionary by which a holder has what it holds; None where that is a list or many keys."""
    below = finding.path[len(finding.holder) : len(finding.holder) + 1]
    return below[0].get("name") if below and below[0]["how"] == "item" else None


def add_nodes(named: list[Finding], found: Iterable[Finding]) -> None:
    """Adds findings of graph nodes to those that are named: who holds storages too is told once, with the nodes besides."""
    told = {holder: finding for finding in named for holder in finding.holders}
    for finding in found:
        known = told.get(finding.holder)
        # Of two keys of one dictionary each is told with what it holds.
        keys = {key_below(one) for one in (known, finding) if one is not None} - {None}
        if known is None or len(keys) > 1:
            named.append(finding)
        else:
            known.nodes_per_step += finding.objects_per_step
            known.node_bytes_per_step += finding.bytes_per_step
            if known.node_bytes_per_step > known.bytes_per_step and not is_of_graph(known.cause):
                # The graphs are most of it.
                known.cause, known.remedy = finding.cause, finding.remedy


def cycle_finding(held: list[tuple[Suspect, Any]], said: str, step: int) -> tuple[Finding | None, set[Place | None]]:
    """What objects that refer to each other keep, told together as `said`, and its lines; no finding if it is too little."""
    group = Group()
    of_cycles = Owner(kinds.CYCLE, Hold(None, "inside", "", "cycle"), False)
    for suspect, row in held:
        if suspect.place is not None:
            group.add(suspect, row, of_cycles)
    if group.bytes_per_step < TOLERATED_BYTES:
        return None, set()
    cause, remedy = why(kinds.CYCLE, of_cycles.hold, False)
    lines = group.places()
    finding = Finding(
        group.bytes_per_step, group.objects_per_step, [str(place) for place in lines], kinds.CYCLE, said, [], [],
        cause, remedy, is_verdict=True, seen_at_step=step, files=[f"{place.file}:{place.line}" for place in lines],
    )  # fmt: skip
    return finding, set(group.lines)


def unseen_finding(growing: Any, step: int) -> Finding:
    """Of a holder whose gains no window saw being made: the line is not known."""
    return _of_holder(growing, growing.owner, growing.owner.kind, growing.storages_per_step, step, growing.is_carried)


def unnamed_finding(suspect: Suspect, step: int) -> Finding:
    """Of a line that leaves something behind, whose holder could not be looked for."""
    cause, remedy = NOT_LOOKED
    finding = Finding(
        suspect.bytes_per_step, len(suspect.rows) / suspect.judged_steps, [], kinds.NOT_KNOWN, HOLDER_NOT_KNOWN, [], [],
        cause, remedy, seen_at_step=step,
    )  # fmt: skip
    return _at(finding, suspect.place)


class Copies(NamedTuple):
    """What a container that is copied in each step gains."""

    place: Any
    owner: Owner
    bytes_per_step: float
    storages_per_step: float
    is_steady: bool


def copied_finding(growing: Copies, step: int) -> Finding:
    """Of a container that is made again in each step, with more in it every time."""
    finding = _of_holder(growing, growing.owner, growing.owner.kind, growing.storages_per_step, step)
    finding.cause, finding.remedy = COPIED
    return _at(finding, growing.place)


class Longer(NamedTuple):
    """What a line has joined so far."""

    place: Any
    owner: Owner
    bytes_per_step: float
    is_steady: bool


def longer_finding(growing: Longer, step: int) -> Finding:
    """Of a tensor that is made anew in each step, longer every time."""
    finding = _of_holder(growing, growing.owner, growing.owner.kind, 1.0, step)
    finding.cause, finding.remedy = LONGER
    return _at(finding, growing.place)


def _at(finding: Finding, place: Place | None) -> Finding:
    if place is not None:
        finding.lines = [str(place)]
        finding.files = [f"{place.file}:{place.line}"]
    return finding


def _of_holder(
    growing: Any, owner: Owner, kind: str, objects_per_step: float, step: int, is_carried: bool = False
) -> Finding:
    """What is known of a holder by its censuses alone."""
    cause, remedy = why(kind, owner.hold, owner.is_scalar, owner.has_graph, is_carried)
    return Finding(
        bytes_per_step=growing.bytes_per_step,
        objects_per_step=objects_per_step,
        lines=[],
        kind=kind,
        held_by=words_of(owner.hold),
        also_held_by=[],
        path=steps_of(owner.hold),
        cause=cause,
        remedy=remedy,
        is_verdict=growing.is_steady,
        is_note=bound_of(owner.hold) is not None,
        seen_at_step=step,
    )


class Iterators:
    """What only iterators lead to that a loop runs over without a name. They are looked for where something else is
    unknown, once a line, and in every look once they have named something."""

    def __init__(self) -> None:
        self.are_followed = False
        self._sought: set[Place | None] = set()

    def name(
        self, unknown: list[tuple[Suspect, Any]], groups: dict[Any, Group], look: Callable[..., Any]
    ) -> list[tuple[Suspect, Any]]:
        """Adds what they lead to to the groups, and gives back the rest; `look` takes a census."""
        places = {suspect.place for suspect, _ in unknown}
        if self.are_followed or places <= self._sought:
            return unknown
        census = look(has_iterators=True)
        self._sought |= places
        left = []
        for suspect, row in unknown:
            owner = census.owners.get(row.key)
            if owner is None:
                left.append((suspect, row))
            else:
                self.are_followed = True
                groups[key_of(holder_of(owner.hold))].add(suspect, row, owner)
        return left


class Libraries:
    """What only a library's globals lead to, or nothing that Python knows, by line."""

    def __init__(self) -> None:
        self._owners: dict[Any, Owner] = {}
        self.walks = 0

    def name(self, unknown: list[tuple[Suspect, Any]], groups: dict[Any, Group], look: Callable[..., Any]) -> None:
        """Adds what is unknown to the groups; `look` takes a census."""
        nobody = Owner(kinds.LIBRARY, Hold(None, "inside", "", "library, not reachable from Python"), False)
        is_new = any(suspect.place not in self._owners for suspect, _ in unknown)
        if is_new and self.walks < MOST_LIBRARY_WALKS:
            census = look(has_libraries=True)
            self.walks += 1
            for suspect, row in unknown:
                owner = census.owners.get(row.key, nobody)._replace(kind=kinds.LIBRARY)
                self._owners.setdefault(suspect.place, owner)
        for suspect, row in unknown:
            owner = self._owners.get(suspect.place, nobody)
            groups[key_of(owner.hold)].add(suspect, row, owner)


def bound_of(hold: Hold) -> int | None:
    """The bound of a container on the path: it cannot grow for ever."""
    return next((step.most for step in hold.path() if step.most is not None), None)


def _is_made_anew(hold: Hold) -> bool:
    """Whether the optimizer or model that has this state is one of several that are kept: each parameter has one
    state and one gradient, which may come late and is no leak."""
    for step in hold.path():
        if step.is_of("module") or step.is_of("optimizer"):
            return False
        if step.how in ("entry", "closure", "frame", "cache", "graph"):
            return True
    return False


def is_same(one: Hold, other: Hold) -> bool:
    """Whether two paths are told together."""
    return bool(key_of(holder_of(one)) == key_of(holder_of(other)))


def _with_keys(hold: Hold, others: list[Hold]) -> tuple[Hold, list[Hold]]:
    """A holder as one of many keys, where other keys of its dictionary hold the same, and who else holds it."""
    apart = [other for other in others if not is_same(hold, other)]
    same = [keys_of(other) for other in others if is_same(hold, other)]
    return (as_container(hold, same) if same else hold), apart
