"""One cycle of rates over the whole training."""

from __future__ import annotations

import math
from typing import Any

from ..optimizer import Optimizer
from ._momentum import first_momenta, set_momentum, uses_beta1
from ._scheduler import LRScheduler, check_optimizer, one_each


def _check_count(name: str, value: Any) -> None:
    if not isinstance(value, int) or value <= 0:
        raise ValueError(f"Expected positive integer {name}, but got {value}")


def _phase(end: float, rates: tuple[str, str], momenta: tuple[str, str]) -> dict[str, Any]:
    """A part of the cycle: when it ends, and between which numbers of a group it leads."""
    return {
        "end_step": end,
        "start_lr": rates[0],
        "end_lr": rates[1],
        "start_momentum": momenta[0],
        "end_momentum": momenta[1],
    }


class OneCycleLR(LRScheduler):
    """Rates that rise to `max_lr` and fall far below where they began, once in `total_steps`; the momentum goes the other
    way."""

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | list[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.85,
        max_momentum: float | list[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        check_optimizer(optimizer)
        self.optimizer = optimizer
        self.total_steps = self._count(total_steps, epochs, steps_per_epoch)
        self._schedule_phases = self._phases(pct_start, three_phase)
        if pct_start < 0 or pct_start > 1 or not isinstance(pct_start, float):
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self._anneal_func_type = anneal_strategy
        starts = last_epoch == -1
        for most, group in zip(one_each("max_lr", optimizer, max_lr), optimizer.param_groups, strict=True):
            if starts:
                group["initial_lr"] = most / div_factor
                group["max_lr"] = most
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.use_beta1 = uses_beta1(optimizer)
            first_momenta(optimizer, base_momentum, max_momentum, self.use_beta1, starts)
        super().__init__(optimizer, last_epoch)

    @staticmethod
    def _count(total_steps: int | None, epochs: int | None, steps_per_epoch: int | None) -> int:
        if total_steps is not None:
            _check_count("total_steps", total_steps)
            return total_steps
        if epochs is None or steps_per_epoch is None:
            raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
        _check_count("epochs", epochs)
        _check_count("steps_per_epoch", steps_per_epoch)
        return epochs * steps_per_epoch

    def _phases(self, share: float, three: bool) -> list[dict[str, Any]]:
        up = _phase(float(share * self.total_steps) - 1, ("initial_lr", "max_lr"), ("max_momentum", "base_momentum"))
        back = ("base_momentum", "max_momentum")
        if not three:
            return [up, _phase(self.total_steps - 1, ("max_lr", "min_lr"), back)]
        down = _phase(float(2 * share * self.total_steps) - 2, ("max_lr", "initial_lr"), back)
        return [up, down, _phase(self.total_steps - 1, ("initial_lr", "min_lr"), ("max_momentum", "max_momentum"))]

    def _between(self, start: Any, end: Any, share: float) -> Any:
        if self._anneal_func_type == "linear":
            return (end - start) * share + start
        return end + (start - end) / 2.0 * (math.cos(math.pi * share) + 1)

    def get_lr(self) -> list[Any]:
        self._warn_outside_step()
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(
                f"Tried to step {step} times. The specified number of total steps is {self.total_steps}"
            )
        ends = [phase["end_step"] for phase in self._schedule_phases]
        number = next((at for at, end in enumerate(ends) if step <= end), len(ends) - 1)
        phase = self._schedule_phases[number]
        start = ends[number - 1] if number else 0.0
        share = (step - start) / (ends[number] - start)
        rates = []
        for group in self.optimizer.param_groups:
            rates.append(self._between(group[phase["start_lr"]], group[phase["end_lr"]], share))
            if self.cycle_momentum:
                bounds = group[phase["start_momentum"]], group[phase["end_momentum"]]
                set_momentum(group, self._between(*bounds, share), self.use_beta1)
        return rates
