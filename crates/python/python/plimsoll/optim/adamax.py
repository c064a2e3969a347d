"""Adamax: Adam with the largest gradient in place of the mean square."""

from __future__ import annotations

from typing import Any

from .._plimsoll import Tensor
from ._fused import FusedOptimizer, check_betas, check_lr, check_number


class Adamax(FusedOptimizer):
    """Adam whose divisor is the largest gradient so far, which fades."""

    _rule = "adamax"
    _absent = {**FusedOptimizer._absent, "capturable": False}

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
        master_weights: bool = False,
    ) -> None:
        check_lr(lr)
        check_number("epsilon value", eps)
        check_betas(betas)
        check_number("weight_decay value", weight_decay)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults, master_weights)

    def _numbers(self, group: dict[str, Any]) -> list[float]:
        return [*map(float, group["betas"]), group["eps"]]

    def _states(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ("exp_avg", "exp_inf")
