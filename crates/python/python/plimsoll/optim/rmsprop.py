"""RMSprop: steps divided by the root of the gradients' mean square."""

from __future__ import annotations

from typing import Any

from .._plimsoll import Tensor
from ._fused import FusedOptimizer, check_lr, check_number


class RMSprop(FusedOptimizer):
    """Steps divided by the root of the gradients' mean square or, centered, of their variance."""

    _rule = "rmsprop"
    _absent = {**FusedOptimizer._absent, "momentum": 0, "centered": False, "capturable": False}

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        *,
        master_weights: bool = False,
    ) -> None:
        check_lr(lr)
        for name, value in (
            ("epsilon value", eps),
            ("momentum value", momentum),
            ("weight_decay value", weight_decay),
            ("alpha value", alpha),
        ):
            check_number(name, value)
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "alpha": alpha,
            "eps": eps,
            "centered": centered,
            "weight_decay": weight_decay,
            "capturable": capturable,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults, master_weights)

    def _numbers(self, group: dict[str, Any]) -> list[float]:
        return [group["alpha"], group["eps"], group["momentum"], group["centered"]]

    def _states(self, group: dict[str, Any]) -> tuple[str, ...]:
        has = {"square_avg": True, "momentum_buffer": group["momentum"] > 0, "grad_avg": group["centered"]}
        return tuple(name for name, is_kept in has.items() if is_kept)
