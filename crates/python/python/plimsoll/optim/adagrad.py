"""Adagrad: steps that shrink with the sum of the squares of all gradients."""

from __future__ import annotations

from typing import Any

from .. import _plimsoll
from .._plimsoll import Tensor
from ._fused import FusedOptimizer, check_lr, check_number, kept_number


class Adagrad(FusedOptimizer):
    """Steps divided by the root of the sum of all squared gradients. What it keeps is made with the optimizer."""

    _rule = "adagrad"
    _absent = {**FusedOptimizer._absent, "fused": None}

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        master_weights: bool = False,
    ) -> None:
        check_lr(lr)
        for name, value in (
            ("lr_decay value", lr_decay),
            ("weight_decay value", weight_decay),
            ("initial_accumulator_value value", initial_accumulator_value),
            ("epsilon value", eps),
        ):
            check_number(name, value)
        defaults = {
            "lr": lr,
            "lr_decay": lr_decay,
            "eps": eps,
            "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults, master_weights)
        for group in self.param_groups:
            for param in group["params"]:
                self._begun(group, param)

    def share_memory(self) -> None:
        """Moves the sums of squares to memory that processes share."""
        for group in self.param_groups:
            for parameter in group["params"]:
                self.state[parameter]["sum"].share_memory_()

    def _numbers(self, group: dict[str, Any]) -> list[float]:
        return [group["lr_decay"], group["eps"]]

    def _states(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ("sum",)

    def _begin(self, group: dict[str, Any], param: Tensor, kept: dict[str, Any], like: Tensor) -> None:
        kept["step"] = kept_number(param)
        kept["sum"] = _plimsoll.full_like(like, group["initial_accumulator_value"])
