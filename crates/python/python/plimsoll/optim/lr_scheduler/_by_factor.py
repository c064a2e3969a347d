"""Schedulers that multiply all rates by one factor at a time. A step multiplies what the rates are now, so that others may
change them too; the closed form, by the epoch alone, is for `step(epoch)`."""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Iterable
from typing import Any

from ..optimizer import Optimizer
from ._scheduler import LRScheduler, values_of


class _FactorLR(LRScheduler):
    """A scheduler by factors."""

    def _next_factor(self) -> float | None:
        """What the rates of the epoch before are multiplied by; `None` if they stay."""
        raise NotImplementedError

    def _whole_factor(self) -> float:
        """What the first rates are multiplied by to be those of this epoch."""
        raise NotImplementedError

    def get_lr(self) -> list[Any]:
        self._warn_outside_step()
        factor = self._next_factor()
        if factor is None:
            return values_of(self.optimizer, "lr")
        return [group["lr"] * factor for group in self.optimizer.param_groups]

    def _get_closed_form_lr(self) -> list[Any]:
        factor = self._whole_factor()
        return [rate * factor for rate in self.base_lrs]


class StepLR(_FactorLR):
    """Multiplies the rates by `gamma` every `step_size` epochs."""

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _next_factor(self) -> float | None:
        stays = self.last_epoch == 0 or self.last_epoch % self.step_size != 0
        return None if stays else self.gamma

    def _whole_factor(self) -> float:
        return float(self.gamma ** (self.last_epoch // self.step_size))


class MultiStepLR(_FactorLR):
    """Multiplies the rates by `gamma` at each milestone."""

    def __init__(
        self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.milestones = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _next_factor(self) -> float | None:
        times = self.milestones.get(self.last_epoch)
        return None if times is None else self.gamma**times

    def _whole_factor(self) -> float:
        return float(self.gamma ** bisect.bisect_right(sorted(self.milestones.elements()), self.last_epoch))


class ConstantLR(_FactorLR):
    """Multiplies the rates by `factor` until epoch `total_iters`."""

    def __init__(
        self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5, last_epoch: int = -1
    ) -> None:
        if not 0 <= factor <= 1.0:
            raise ValueError("Constant multiplicative factor expected to be between 0 and 1.")
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def _next_factor(self) -> float | None:
        if self.last_epoch == 0:
            return self.factor
        return 1.0 / self.factor if self.last_epoch == self.total_iters else None

    def _whole_factor(self) -> float:
        return self.factor + (self.last_epoch >= self.total_iters) * (1 - self.factor)


class LinearLR(_FactorLR):
    """A factor that goes straight from `start_factor` to `end_factor` in `total_iters` epochs."""

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0 < start_factor <= 1.0:
            raise ValueError("Starting multiplicative factor expected to be greater than 0 and less or equal to 1.")
        if not 0 <= end_factor <= 1.0:
            raise ValueError("Ending multiplicative factor expected to be between 0 and 1.")
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def _next_factor(self) -> float | None:
        if self.last_epoch == 0:
            return self.start_factor
        if self._is_initial or self.last_epoch > self.total_iters:
            return None
        rise = self.end_factor - self.start_factor
        return 1.0 + rise / (self.total_iters * self.start_factor + (self.last_epoch - 1) * rise)

    def _whole_factor(self) -> float:
        rise = self.end_factor - self.start_factor
        return self.start_factor + rise * min(self.total_iters, self.last_epoch) / self.total_iters


class ExponentialLR(_FactorLR):
    """Multiplies the rates by `gamma` every epoch."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _next_factor(self) -> float | None:
        return None if self._is_initial else self.gamma

    def _whole_factor(self) -> float:
        return float(self.gamma**self.last_epoch)


class PolynomialLR(_FactorLR):
    """Rates that fall to 0 in `total_iters` epochs, as a power of what is left."""

    def __init__(
        self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1
    ) -> None:
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def _next_factor(self) -> float | None:
        if self._is_initial or self.last_epoch > self.total_iters:
            return None
        left, before = (1.0 - epoch / self.total_iters for epoch in (self.last_epoch, self.last_epoch - 1))
        return float((left / before) ** self.power)

    def _whole_factor(self) -> float:
        return float((1.0 - min(self.total_iters, self.last_epoch) / self.total_iters) ** self.power)
