"""Rates that go up and down between two bounds."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..optimizer import Optimizer
from ._momentum import first_momenta, set_momentum, uses_beta1
from ._scheduler import LRScheduler, check_optimizer, function_state, one_each, set_value

_MODES = ("triangular", "triangular2", "exp_range")


class CyclicLR(LRScheduler):
    """Rates that rise from `base_lr` to `max_lr` and fall back, over and over; the momentum goes the other way."""

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | list[float],
        max_lr: float | list[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float = 0.8,
        max_momentum: float = 0.9,
        last_epoch: int = -1,
    ) -> None:
        check_optimizer(optimizer)
        self.optimizer = optimizer
        base_lrs = one_each("base_lr", optimizer, base_lr)
        if last_epoch == -1:
            for rate, group in zip(base_lrs, optimizer.param_groups, strict=True):
                set_value(group, "lr", rate)
        self.max_lrs = one_each("max_lr", optimizer, max_lr)
        up = float(step_size_up)
        self.total_size = up + (up if step_size_down is None else float(step_size_down))
        self.step_ratio = up / self.total_size
        if mode not in _MODES and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode = scale_mode
        if scale_fn is None:
            self.scale_mode = "iterations" if mode == "exp_range" else "cycle"
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.use_beta1 = uses_beta1(optimizer)
            momenta = first_momenta(optimizer, base_momentum, max_momentum, self.use_beta1, last_epoch == -1)
            self.base_momentums, self.max_momentums = momenta
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def scale_fn(self, x: float) -> float:
        """How much of its height a cycle has, by the cycle's number or by the step's."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        if self.mode == "triangular2":
            return float(1 / 2.0 ** (x - 1))
        return float(self.gamma**x) if self.mode == "exp_range" else 1.0

    def get_lr(self) -> list[Any]:
        self._warn_outside_step()
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        at = 1.0 + self.last_epoch / self.total_size - cycle
        share = at / self.step_ratio if at <= self.step_ratio else (at - 1) / (self.step_ratio - 1)
        by = cycle if self.scale_mode == "cycle" else self.last_epoch
        rates = [
            low + (high - low) * share * self.scale_fn(by)
            for low, high in zip(self.base_lrs, self.max_lrs, strict=True)
        ]
        if self.cycle_momentum:
            bounds = zip(self.base_momentums, self.max_momentums, self.optimizer.param_groups, strict=True)
            for low, high, group in bounds:
                set_momentum(group, high - (high - low) * share * self.scale_fn(by), self.use_beta1)
        return rates

    def state_dict(self) -> dict[str, Any]:
        state = super().state_dict()
        function = state.pop("_scale_fn_custom")
        state["_scale_fn_custom"] = None if function is None else function_state(function)
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        state = dict(state_dict)
        function = state.pop("_scale_fn_custom")
        super().load_state_dict(state)
        if function is not None and self._scale_fn_custom is not None:
            self._scale_fn_custom.__dict__.update(function)
