"""Averages of a model's weights over training: of all that were shown (SWA), or running ones (EMA)."""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Callable, Iterable
from typing import Any

from .. import _plimsoll
from .._modes import no_grad
from .._plimsoll import Tensor
from ..nn.modules.batchnorm import _BatchNorm
from ..nn.modules.module import Module
from .lr_scheduler._scheduler import LRScheduler, one_each
from .optimizer import Optimizer


def _check_decay(decay: float) -> None:
    if not 0.0 <= decay <= 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")


def get_ema_avg_fn(decay: float = 0.999) -> Callable[..., Tensor]:
    """A running mean of which `decay` stays, as a function of an average, a value and their number."""
    _check_decay(decay)

    @no_grad()
    def ema_update(ema_param: Tensor, current_param: Tensor, num_averaged: Any) -> Tensor:
        return decay * ema_param + (1 - decay) * current_param

    return ema_update


def get_swa_avg_fn() -> Callable[..., Tensor]:
    """The mean of all values, as a function of an average, a value and how many there were."""

    @no_grad()
    def swa_update(averaged_param: Tensor, current_param: Tensor, num_averaged: Any) -> Tensor:
        return averaged_param + (current_param - averaged_param) / (num_averaged + 1)  # type: ignore[no-any-return]

    return swa_update


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable[..., None]:
    """A running mean of which `decay` stays, in place on a list of averages."""
    _check_decay(decay)

    @no_grad()
    def ema_update(ema_param_list: Any, current_param_list: Any, _: Any) -> None:
        for average, value in zip(ema_param_list, current_param_list, strict=True):
            if average.is_floating_point():
                average.lerp_(value, 1 - decay)
            else:
                average.copy_(average * decay + value * (1 - decay))

    return ema_update


def get_swa_multi_avg_fn() -> Callable[..., None]:
    """The mean of all values, in place on a list of averages."""

    @no_grad()
    def swa_update(averaged_param_list: Any, current_param_list: Any, num_averaged: Any) -> None:
        share = 1 / (float(num_averaged) + 1)
        for average, value in zip(averaged_param_list, current_param_list, strict=True):
            if average.is_floating_point():
                average.lerp_(value, share)
            else:
                average.copy_(average + (value - average) * share)

    return swa_update


class AveragedModel(Module):
    """A copy of a model whose parameters are averages of those that `update_parameters` was shown."""

    n_averaged: Tensor

    def __init__(
        self,
        model: Module,
        device: Any = None,
        avg_fn: Callable[..., Tensor] | None = None,
        multi_avg_fn: Callable[..., None] | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = copy.deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", _plimsoll.tensor(0, dtype=_plimsoll.int64, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the averaged model gives."""
        return self.module(*args, **kwargs)

    def _averaged(self, model: Module) -> Iterable[Tensor]:
        return itertools.chain(model.parameters(), model.buffers()) if self.use_buffers else model.parameters()

    def update_parameters(self, model: Module) -> None:
        """Takes the model's parameters into the averages."""
        averages, values = [], []
        for average, value in zip(self._averaged(self.module), self._averaged(model)):  # noqa: B905
            averages.append(average.detach())
            values.append(value.detach().to(average.device))
        with no_grad():
            if bool(self.n_averaged == 0):
                for average, value in zip(averages, values, strict=True):
                    average.copy_(value)
            elif self.avg_fn is not None:
                for average, value in zip(averages, values, strict=True):
                    count = self.n_averaged.to(average.device)
                    average.copy_(self.avg_fn(average, value, count))
            else:
                self._update_lists(averages, values)
            if not self.use_buffers:
                for own, buffer in zip(self.module.buffers(), model.buffers(), strict=True):
                    own.detach().copy_(buffer.detach().to(own.device))
            self.n_averaged += 1

    def _update_lists(self, averages: list[Tensor], values: list[Tensor]) -> None:
        """One call for all averages of one device and dtype."""
        update = self.multi_avg_fn or get_swa_multi_avg_fn()
        groups: dict[Any, tuple[list[Tensor], list[Tensor]]] = {}
        for average, value in zip(averages, values, strict=True):
            lists = groups.setdefault((str(average.device), str(average.dtype)), ([], []))
            lists[0].append(average)
            lists[1].append(value)
        for lists in groups.values():
            update(*lists, self.n_averaged.to(lists[0][0].device))


@no_grad()
def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Computes the running statistics of all batch norms anew, over everything that the loader gives."""
    norms = [module for module in model.modules() if isinstance(module, _BatchNorm)]
    if not norms:
        return
    momenta = [norm.momentum for norm in norms]
    was_training = model.training
    model.train()
    for norm in norms:
        norm.reset_running_stats()
        # Then each batch counts alike.
        norm.momentum = None
    for batch in loader:
        given = batch[0] if isinstance(batch, (list, tuple)) else batch
        model(given if device is None else given.to(device))
    for norm, momentum in zip(norms, momenta, strict=True):
        norm.momentum = momentum
    model.train(was_training)


class SWALR(LRScheduler):
    """Rates that go to `swa_lr` in `anneal_epochs` epochs and stay there."""

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: float | list[float],
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        for rate, group in zip(one_each("swa_lr", optimizer, swa_lr), optimizer.param_groups, strict=True):
            group["swa_lr"] = rate
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self._anneal_strategy = anneal_strategy
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def _share(self, step: int) -> float:
        """How much of the new rate there is after so many steps."""
        at = max(0, min(1, step / max(1, self.anneal_epochs)))
        return at if self._anneal_strategy == "linear" else (1 - math.cos(math.pi * at)) / 2

    def get_lr(self) -> list[Any]:
        self._warn_outside_step()
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = self._share(step - 1), self._share(step)
        rates = []
        for group in self.optimizer.param_groups:
            goal = group["swa_lr"]
            # What the rate would be without the steps so far.
            plain = goal if before == 1 else (group["lr"] - before * goal) / (1 - before)
            rates.append(goal * now + plain * (1 - now))
        return rates
