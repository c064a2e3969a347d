"""Lion: steps by the sign of a running mean of gradients. PyTorch has none; the arguments are those of its paper's code."""

from __future__ import annotations

from typing import Any

from .._plimsoll import Tensor
from ._fused import FusedOptimizer, check_betas, check_lr, check_number


class Lion(FusedOptimizer):
    """Steps by the sign of a running mean of gradients; half of what Adam keeps. Weight decay goes by the parameter itself.

    Its learning rate is usually three to ten times smaller than Adam's, and its weight decay as much larger."""

    _rule = "lion"
    _counts_steps = False
    _decoupled = True

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-4,
        betas: tuple[float, float] = (0.9, 0.99),
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        master_weights: bool = False,
    ) -> None:
        check_lr(lr)
        check_betas(betas)
        check_number("weight_decay value", weight_decay)
        defaults = {
            "lr": lr,
            "betas": betas,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults, master_weights)

    def _numbers(self, group: dict[str, Any]) -> list[float]:
        return list(map(float, group["betas"]))

    def _states(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ("exp_avg",)
