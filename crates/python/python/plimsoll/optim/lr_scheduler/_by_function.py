"""Schedulers by the user's functions of the epoch, one for each group."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..optimizer import Optimizer
from ._scheduler import LRScheduler, function_state, values_of


class _FunctionLR(LRScheduler):
    """Functions of the epoch. A state has no plain functions in it, and the attributes of objects that can be called."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Any, last_epoch: int = -1) -> None:
        self.optimizer = optimizer
        count = len(optimizer.param_groups)
        functions = list(lr_lambda) if isinstance(lr_lambda, (list, tuple)) else [lr_lambda] * count
        if len(functions) != count:
            raise ValueError(f"Expected {count} lr_lambdas, but got {len(functions)}")
        self.lr_lambdas: list[Callable[[int], float]] = functions
        super().__init__(optimizer, last_epoch)

    def state_dict(self) -> dict[str, Any]:
        state = super().state_dict()
        # Last, as in PyTorch.
        functions = state.pop("lr_lambdas")
        state["lr_lambdas"] = [function_state(function) for function in functions]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        super().load_state_dict({key: value for key, value in state_dict.items() if key != "lr_lambdas"})
        for function, state in zip(self.lr_lambdas, state_dict["lr_lambdas"], strict=True):
            if state is not None:
                function.__dict__.update(state)

    def _by(self, rates: list[Any]) -> list[Any]:
        pairs = zip(rates, self.lr_lambdas, strict=True)
        return [rate * function(self.last_epoch) for rate, function in pairs]


class LambdaLR(_FunctionLR):
    """The first rates, multiplied by a function of the epoch."""

    def get_lr(self) -> list[Any]:
        self._warn_outside_step()
        return self._by(self.base_lrs)


class MultiplicativeLR(_FunctionLR):
    """The rates of the epoch before, multiplied by a function of the epoch."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Any, last_epoch: int = -1) -> None:
        for function in lr_lambda if isinstance(lr_lambda, (list, tuple)) else [lr_lambda]:
            if not callable(function):
                raise TypeError(f"lr_lambda should be a function, but got {type(function).__name__}")
        super().__init__(optimizer, lr_lambda, last_epoch)

    def get_lr(self) -> list[Any]:
        self._warn_outside_step()
        if self._is_initial:
            return values_of(self.optimizer, "lr")
        return self._by([group["lr"] for group in self.optimizer.param_groups])
