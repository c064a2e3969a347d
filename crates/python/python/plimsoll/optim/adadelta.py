"""Adadelta: steps in the measure of the steps before."""

from __future__ import annotations

from typing import Any

from .._plimsoll import Tensor
from ._fused import FusedOptimizer, check_lr, check_number


class Adadelta(FusedOptimizer):
    """Steps in the measure of the steps before, so that the learning rate matters little."""

    _rule = "adadelta"
    _absent = {**FusedOptimizer._absent, "capturable": False}

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
        master_weights: bool = False,
    ) -> None:
        check_lr(lr)
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        check_number("epsilon value", eps)
        check_number("weight_decay value", weight_decay)
        defaults = {
            "lr": lr,
            "rho": rho,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "capturable": capturable,
            "foreach": foreach,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults, master_weights)

    def _numbers(self, group: dict[str, Any]) -> list[float]:
        return [group["rho"], group["eps"]]

    def _states(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ("square_avg", "acc_delta")
