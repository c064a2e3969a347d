"""Who else holds what a finding's holder holds: looks that pass by those who are named already, and what is left then. What is
told of each is `_naming.py`'s."""

from __future__ import annotations

from typing import Any, Callable, NamedTuple

from ._findings import Owner, as_container, container_of, holder_of, is_kept_in_container, name_of
from ._holders import Hold
from ._naming import Group, is_same
from ._nodes import GrowingNodes

# Further holders of the same bytes that are looked for.
MOST_OTHERS = 2
# Another module whose gradients hold so small a part of the nodes is not told: one in so many.
LEAST_PART = 10


class Without(NamedTuple):
    """What a census passes by."""

    skip: set[int]
    edges: set[Any]

    def add(self, hold: Hold) -> None:
        holder = holder_of(hold)
        container = container_of(holder)
        if holder.how == "grad" and not is_kept_in_container(holder):
            # The gradient alone is to be let go of: who else leads to its tensor does not hold it besides.
            self.edges.add(holder.edge())
        elif container is not None:
            self.skip.add(container.held)
        else:
            self.edges.add(name_of(holder).edge())


def _left_one_by_one(holds: list[Hold], left: Callable[[Without, Without], Hold | None]) -> list[Hold]:
    """Who holds it besides, one after the other; `left` is asked who is left without those that are named and found, and is told
    which of them were found."""
    without, apart = Without(set(), set()), Without(set(), set())
    named = holds
    found: list[Hold] = []
    for _ in range(MOST_OTHERS):
        for hold in holds:
            without.add(hold)
            if found:
                apart.add(hold)
        still = left(without, apart)
        if still is None:
            break
        if any(is_same(still, known) for known in (*named, *found)):
            # Under another key of the same dictionary: all of it is to be let go of.
            still = as_container(still)
        found.append(still)
        holds = [still]
    return found


def others_of(group: Group, look: Any) -> list[Hold]:
    """Who else holds the same bytes."""

    def left(without: Without, _: Without) -> Hold | None:
        census = look(*without)
        owners = [census.owners[key] for key in group.keys if key in census.owners]
        return owners[0].hold if len(owners) * 2 >= len(group.keys) else None

    return _left_one_by_one([group.owner()[1].hold, *group.shared_with], left)


def others_of_nodes(growing: GrowingNodes, look: Any, before: dict[Any, tuple[int, Owner | None, Any]]) -> list[Hold]:
    """Who else holds the same graph: whose nodes become more where the named holders are passed by. `before` is what each had
    beside them, as every node is counted once. What remains under the named holder's own edge is another's: gradients of
    modules are counted together, and each module that has a part of them is told."""

    def left(without: Without, apart: Without) -> Hold | None:
        # Gradients of one more module are passed by: those of the others hold less by themselves.
        beside = look(*apart).nodes if any(apart) else before
        most, found = 0, None
        for edge, (count, owner, _) in look(*without).nodes.items():
            is_own = edge == growing.edge
            gained = count if is_own else count - (beside[edge][0] if edge in beside else 0)
            if owner is not None and gained > most and gained * (LEAST_PART if is_own else 2) >= growing.nodes:
                most, found = gained, owner.hold
        return found

    return _left_one_by_one([growing.owner.hold], left)
