"""The phases of a step, for `--phases`: forward until backward begins, backward, the optimizer's step. It tells the
phase in which storages are made, and, in whole windows, how the noted bytes change over each. It judges nothing;
`_session.py` starts it and `_render.py` tells it."""

from __future__ import annotations

import collections
import functools
import importlib
from typing import Any, Callable, NamedTuple

import torch

from ._making import Making
from ._passing import pass_by
from ._errors import is_programs_own
from ._step_hooks import put_in
from ._uncompiled import leave_alone

FORWARD, BACKWARD, OPTIMIZER = "forward", "backward", "optimizer step"
PHASES = (FORWARD, BACKWARD, OPTIMIZER)


class Phase(NamedTuple):
    """Bytes, on average over the steps of whole windows: the change within the phase, and the growth of the level at
    its end from step to step."""

    name: str
    change_bytes: float
    growth_bytes: float


class Phases:
    """Follows backward and the optimizers. The level is that of storages noted in the window: those made before it are
    the same at both ends of a comparison."""

    def __init__(self, making: Making) -> None:
        self._making = making
        self._level = 0
        self._window = -1
        self._changes: dict[str, list[int]] = collections.defaultdict(list)
        self._growths: dict[str, list[int]] = collections.defaultdict(list)
        self._step = 0
        self._ends: dict[str, int] = {}
        self._ends_before: dict[str, int] = {}
        self._depth = 0
        self._undo: list[Callable[[], None]] = []
        # Is told what goes wrong here.
        self.on_trouble: Callable[[Exception], None] = lambda _: None

    def start(self) -> None:
        self._making.phase = FORWARD
        leave_alone(torch, Phases._pass)
        # Not as an attribute: PyTorch takes the module's name away from the package.
        optimizers = importlib.import_module("torch.optim.optimizer")
        self._undo.append(put_in(optimizers, "pre", lambda *_: self._begin(OPTIMIZER)))
        self._undo.append(put_in(optimizers, "post", lambda *_: self._end(OPTIMIZER)))
        for name in ("backward", "grad"):
            self._follow(name)

    def stop(self) -> None:
        for undo in self._undo:
            undo()
        self._undo.clear()

    def _follow(self, name: str) -> None:
        call = getattr(torch.autograd, name)

        @functools.wraps(call)
        def followed(*args: Any, **kwargs: Any) -> Any:
            if self._depth:
                return call(*args, **kwargs)
            self._depth += 1
            self._begin(BACKWARD)
            try:
                return call(*args, **kwargs)
            finally:
                self._depth -= 1
                self._end(BACKWARD)

        def undo() -> None:
            if getattr(torch.autograd, name) is followed:
                setattr(torch.autograd, name, call)

        # The compiler sees the call itself.
        followed._torchdynamo_inline = call  # type: ignore[attr-defined]
        pass_by(followed)
        leave_alone(torch, followed, and_calls=False)
        setattr(torch.autograd, name, followed)
        self._undo.append(undo)

    def _begin(self, phase: str) -> None:
        # Between backward and the optimizer's step is neither (gradients are clipped).
        self._pass(FORWARD if phase == BACKWARD else None, phase)

    def _end(self, phase: str) -> None:
        self._pass(phase, FORWARD)

    def _pass(self, ended: str | None, begun: str) -> None:
        try:
            self._mark(ended)
            self._making.phase = begun
        except Exception as error:  # the program goes on whatever happens here
            if is_programs_own(error):
                raise
            self.on_trouble(error)

    def _mark(self, phase: str | None) -> None:
        making = self._making
        if not making.is_noting or making.epoch:
            self._window = -1
            return
        if making.window != self._window:
            self._window, self._step, self._level = making.window, making.step, 0
            self._ends, self._ends_before = {}, {}
        if making.step != self._step:
            self._turn(making.step)
        rows = list(making.rows.values())
        level = sum(row.bytes for row in rows if row.step >= self._window and row.is_alive())
        if phase is not None:
            # The first step of a window lets nothing go that was noted.
            if self._step > self._window:
                self._changes[phase].append(level - self._level)
            self._ends[phase] = level
        self._level = level

    def _turn(self, step: int) -> None:
        """Another step has begun: the last ends of the one before are compared with those before them."""
        if self._step > self._window + 1:
            for phase in self._ends.keys() & self._ends_before.keys():
                self._growths[phase].append(self._ends[phase] - self._ends_before[phase])
        self._ends_before, self._ends, self._step = self._ends, {}, step

    def told(self) -> list[Phase]:
        """In the order of a step; those that were seen."""
        return [
            Phase(name, _mean(self._changes[name]), _mean(self._growths[name]))
            for name in PHASES
            if self._changes[name] and self._growths[name]
        ]


def _mean(values: list[int]) -> float:
    return sum(values) / len(values)
