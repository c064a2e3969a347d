"""Rates that fall along half a cosine, once or with restarts."""

from __future__ import annotations

import math
from typing import Any

from ..optimizer import Optimizer
from ._scheduler import LRScheduler, values_of


def _between(least: float, most: Any, at: float, of: float) -> Any:
    """Where half a cosine from `most` down to `least` is after `at` of `of` epochs."""
    return least + (most - least) * (1 + math.cos(math.pi * at / of)) / 2


class CosineAnnealingLR(LRScheduler):
    """Rates that fall to `eta_min` in `T_max` epochs along half a cosine, and rise again as many after."""

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        self._warn_outside_step()
        groups, epoch, least = self.optimizer.param_groups, self.last_epoch, self.eta_min
        if self._is_initial:
            return values_of(self.optimizer, "lr")
        if self._step_count == 1 and epoch > 0:
            return self._get_closed_form_lr()
        if (epoch - 1 - self.T_max) % (2 * self.T_max) == 0:
            # The rates are at their least, where the quotient below has a 0 under it.
            rise = 1 - math.cos(math.pi / self.T_max)
            pairs = zip(groups, self.base_lrs, strict=True)
            return [group["lr"] + (first - least) * rise / 2 for group, first in pairs]
        now, before = (1 + math.cos(math.pi * at / self.T_max) for at in (epoch, epoch - 1))
        return [now / before * (group["lr"] - least) + least for group in groups]

    def _get_closed_form_lr(self) -> list[Any]:
        return [_between(self.eta_min, first, self.last_epoch, self.T_max) for first in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Rates that fall to `eta_min` along half a cosine and start again: after `T_0` epochs, then `T_mult` times as many."""

    def __init__(
        self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        if T_0 <= 0 or not isinstance(T_0, int):
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, (float, int)):
            raise ValueError(f"Expected float or int eta_min, but got {eta_min} of type {type(eta_min)}")
        self.T_0 = T_0
        self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        self._warn_outside_step()
        return [_between(self.eta_min, first, self.T_cur, self.T_i) for first in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Goes on to the next epoch, or to a part of one: `epoch` may be a fraction."""
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur %= self.T_i
                self.T_i *= self.T_mult
        else:
            self._go_to(epoch)
        self.last_epoch = math.floor(epoch)
        self._set_rates(self.get_lr)

    def _go_to(self, epoch: float) -> None:
        if epoch < 0:
            raise ValueError(f"Expected non-negative epoch, but got {epoch}")
        if epoch < self.T_0:
            self.T_i, self.T_cur = self.T_0, epoch
        elif self.T_mult == 1:
            self.T_cur = epoch % self.T_0
        else:
            rounds = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
            self.T_cur = epoch - self.T_0 * (self.T_mult**rounds - 1) / (self.T_mult - 1)
            self.T_i = self.T_0 * self.T_mult**rounds
