"""Several schedulers of one optimizer: one after another, or all at once."""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from typing import Any

from ..optimizer import Optimizer
from ._plateau import ReduceLROnPlateau
from ._scheduler import LRScheduler, set_value, values_of


class _CombinedLR(LRScheduler):
    """What both have: checks, and states of all schedulers."""

    _schedulers: Sequence[Any]

    def _check(self, schedulers: Sequence[Any], optimizer: Optimizer) -> None:
        name = type(self).__name__
        for number, scheduler in enumerate(schedulers):
            if not hasattr(scheduler, "optimizer"):
                raise TypeError(f"{name} at index {number} should have `optimizer` as its attribute.")
            if isinstance(scheduler, ReduceLROnPlateau):
                raise ValueError(
                    f"{name} does not support `ReduceLROnPlateau` scheduler as it requires additional kwargs to be "
                    f"specified when calling `step`, but got one at index {number} in the given schedulers sequence."
                )
            if optimizer != scheduler.optimizer:
                raise ValueError(
                    f"{name} expects all schedulers to belong to the same optimizer, but got scheduler "
                    f"{type(scheduler).__name__} at index {number} has {scheduler.optimizer}, which is different from "
                    f"{type(optimizer).__name__}."
                )

    def state_dict(self) -> dict[str, Any]:
        state = super().state_dict()
        schedulers = state.pop("_schedulers")
        state["_schedulers"] = [scheduler.state_dict() for scheduler in schedulers]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        super().load_state_dict({key: value for key, value in state_dict.items() if key != "_schedulers"})
        for scheduler, state in zip(self._schedulers, state_dict["_schedulers"], strict=True):
            scheduler.load_state_dict(state)


class SequentialLR(_CombinedLR):
    """One scheduler after another: the next begins at each milestone."""

    def __init__(
        self, optimizer: Optimizer, schedulers: list[Any], milestones: list[int], last_epoch: int = -1
    ) -> None:
        if len(schedulers) < 1:
            raise ValueError(f"{type(self).__name__} expects at least one scheduler, but got no scheduler.")
        self._check(schedulers, optimizer)
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                "Sequential Schedulers expects number of schedulers provided to be one more than the number of milestone "
                f"points, but got number of schedulers {len(schedulers)} and the number of milestones to be equal to "
                f"{len(milestones)}"
            )
        self._schedulers = schedulers
        self._milestones = milestones
        self.last_epoch = last_epoch + 1
        self.optimizer = optimizer
        # The schedulers took their first steps when they were made: all but the first one's are undone.
        for group in optimizer.param_groups:
            set_value(group, "lr", group["initial_lr"])
        self.recursive_undo()
        first = schedulers[bisect.bisect_right(milestones, 0)]
        first._initial_step()
        self._last_lr = first.get_last_lr()

    def recursive_undo(self, sched: Any = None) -> None:
        """Takes back the first step of all schedulers, also of those inside of others."""
        whole = self if sched is None else sched
        if hasattr(whole, "_schedulers"):
            for scheduler in whole._schedulers:
                self.recursive_undo(scheduler)
        elif hasattr(whole, "last_epoch"):
            whole.last_epoch -= 1

    def step(self) -> None:  # type: ignore[override]
        """A step of the scheduler whose turn it is."""
        self.last_epoch += 1
        number = bisect.bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[number]
        if number > 0 and self._milestones[number - 1] == self.last_epoch:
            scheduler._update_lr(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()


class ChainedScheduler(_CombinedLR):
    """All schedulers at once: each changes what those before it left."""

    def __init__(self, schedulers: Sequence[Any], optimizer: Optimizer | None = None) -> None:
        if len(schedulers) < 1:
            raise ValueError(
                f"{type(self).__name__} expects at least one scheduler to be chained, but got no scheduler."
            )
        own = optimizer or schedulers[0].optimizer
        self._check(schedulers, own)
        self._schedulers = schedulers
        self.optimizer = own
        self._last_lr = values_of(own, "lr")

    def step(self) -> None:  # type: ignore[override]
        """A step of every scheduler."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = values_of(self.optimizer, "lr")
