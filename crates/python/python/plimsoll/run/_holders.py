"""Who holds what a line makes, looked at while the program runs: what a function holds in its own variables has no name
any more when the program has ended. Looks are rare and grow rarer; each is one walk (`watch/_holders.py`) over the names of
the program."""

from __future__ import annotations

import collections
import time
from typing import Any, NamedTuple

from .._plimsoll import Tensor, _origin
from ..optim.optimizer import Optimizer
from ..watch._holders import Hold, Walk

# The first look, and by what factor the steps grow until the next.
FIRST_LOOK = 8
LOOK_AGAIN = 1.5
# Looks take at most this share of the time.
MOST_SHARE = 0.02
# Steps of a path that are told.
MOST_WORDS = 4

Line = tuple[str, int]


class Holder(NamedTuple):
    """A path of the program to tensors of one line."""

    words: str
    ways: tuple[str, ...]
    bound: int | None
    is_optimizer_state: bool


class Looks:
    """The holders of each line's tensors, as the latest look found them."""

    def __init__(self) -> None:
        self.by_line: dict[Line, Holder] = {}
        self.of_graphs: Holder | None = None
        self._next, self._at, self._took = FIRST_LOOK, 0.0, 0.0

    def step(self, count: int, loops: list[Any]) -> None:
        """Looks if it is time to."""
        now = time.perf_counter()
        if count < self._next or (now - self._at) * MOST_SHARE < self._took:
            return
        self._next = int(count * LOOK_AGAIN)
        self.look(loops)
        self._at = time.perf_counter()
        self._took = self._at - now

    def look(self, loops: list[Any], traceback: Any = None) -> None:
        lines: dict[Line, collections.Counter[Holder]] = collections.defaultdict(collections.Counter)
        graphs: collections.Counter[Holder] = collections.Counter()

        def on_tensor(tensor: Any, hold: Hold) -> None:
            holder = _holder(hold)
            origin = _origin(tensor)
            if origin is not None:
                lines[origin[:2]][holder] += 1
            if tensor.grad_fn is not None:
                graphs[holder] += 1

        walk_tensors(on_tensor, loops, traceback)
        self.by_line.update({line: found.most_common(1)[0][0] for line, found in lines.items()})
        if graphs:
            self.of_graphs = graphs.most_common(1)[0][0]


def walk_tensors(on_tensor: Any, loops: list[Any], traceback: Any = None) -> None:
    """Calls `on_tensor` with every tensor that a name of the program leads to, gradients too, and how it is held. What an
    optimizer holds comes last: a parameter belongs to its module."""
    optimizers: list[tuple[Any, Hold]] = []

    def on_object(value: Any, hold: Hold) -> bool:
        if issubclass(type(value), Optimizer):
            optimizers.append((value, hold))
            return True
        if not issubclass(type(value), Tensor):
            return False
        on_tensor(value, hold)
        gradient = value.grad if value.is_leaf else None
        if gradient is not None:
            on_tensor(gradient, Hold(hold, "grad"))
        walk.attributes(value, hold)
        return True

    walk = Walk(set(), set(), on_object)
    try:
        walk.user_globals()
        walk.running_frames()
        walk.running_loops(loops)
        walk.traceback(traceback)
        walk.run()
        while optimizers:
            walk.attributes(*optimizers.pop())
            walk.run()
    finally:
        walk.close()


def _holder(hold: Hold) -> Holder:
    path = hold.path()
    words = " -> ".join(step.words() for step in path[:MOST_WORDS])
    bound = next((step.most for step in path if step.most is not None), None)
    # One optimizer's state: a container of optimizers on the way would make it one of many.
    state = next((at for at, step in enumerate(path) if step.is_optimizer_state), None)
    is_one = state is not None and not any(step.how in ("entry", "closure", "cache") for step in path[:state])
    return Holder(words, tuple(step.how for step in path), bound, is_one)
