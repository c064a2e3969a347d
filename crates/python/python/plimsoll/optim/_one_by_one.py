"""Optimizers whose step is made of tensor operations, one parameter after another: rules that need a number of the whole
parameter, or that few use. Most optimizers step in one operation (`_fused.py`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _plimsoll
from .._modes import enable_grad, no_grad
from .._plimsoll import Tensor
from ._fused import kept_number
from .optimizer import Optimizer


class OneByOne(Optimizer):
    """An optimizer that changes one parameter after another."""

    # What groups of older versions lack.
    _absent: dict[str, Any] = {"foreach": None, "maximize": False}
    # What is kept as a float32 of its own, which older versions kept as a number.
    _kept_numbers: tuple[str, ...] = ("step",)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            for name, value in self._absent.items():
                group.setdefault(name, value)
            for param in group["params"]:
                kept = self.state.get(param) or {}
                for name in self._kept_numbers:
                    if name in kept and not isinstance(kept[name], Tensor):
                        kept[name] = kept_number(param, float(kept[name]))

    def _begin(self, group: dict[str, Any], param: Tensor, kept: dict[str, Any]) -> None:
        """Makes what is kept beside a parameter."""
        raise NotImplementedError

    def _update(self, group: dict[str, Any], param: Tensor, grad: Tensor, kept: dict[str, Any]) -> None:
        """One step of one parameter, outside of every graph."""
        raise NotImplementedError

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One step of all parameters that have gradients. `closure` computes the loss anew; what it returns is returned."""
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        for group in self.param_groups:
            for param in group["params"]:
                if param.grad is not None:
                    self._step_one(group, param, param.grad)
        return loss

    def _step_one(self, group: dict[str, Any], param: Tensor, grad: Tensor) -> None:
        self._begun(group, param)
        with no_grad(), _plimsoll._Phase("optimizer", param):
            self._update(group, param, -grad if group.get("maximize") else grad, self.state[param])

    def _begun(self, group: dict[str, Any], param: Tensor) -> None:
        """Makes what is kept beside a parameter, booked as an optimizer's: all of it or, if memory runs out, nothing."""
        if self.state.get(param):
            return
        kept: dict[str, Any] = {}
        with no_grad(), _plimsoll._Phase("optimizer", param):
            self._begin(group, param, kept)
            for value in kept.values():
                value.mark_optimizer_state()
        self.state[param].update(kept)
