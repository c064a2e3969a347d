"""NAdam: Adam with Nesterov's momentum."""

from __future__ import annotations

from typing import Any

from .._plimsoll import Tensor
from ._fused import FusedOptimizer, check_betas, check_lr, check_number, has_begun, kept_number
from ._lists import Lists, step_lists


class NAdam(FusedOptimizer):
    """Adam with Nesterov's momentum, which grows to its full share over the first steps."""

    _rule = "nadam"
    _captured = "params, mu_products and state_steps"
    _decoupled = None
    _absent = {**FusedOptimizer._absent, "capturable": False, "decoupled_weight_decay": False}

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        master_weights: bool = False,
    ) -> None:
        check_lr(lr)
        check_number("epsilon value", eps)
        check_betas(betas)
        check_number("weight_decay value", weight_decay)
        check_number("momentum_decay value", momentum_decay)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "momentum_decay": momentum_decay,
            "decoupled_weight_decay": decoupled_weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults, master_weights)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            for param in group["params"]:
                kept = self.state.get(param) or {}
                if has_begun(kept) and not isinstance(kept.get("mu_product", 1.0), Tensor):
                    kept["mu_product"] = kept_number(param, float(kept["mu_product"]))

    def _numbers(self, group: dict[str, Any]) -> list[float]:
        return [*map(float, group["betas"]), group["eps"], group["momentum_decay"]]

    def _states(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ("exp_avg", "exp_avg_sq")

    def _begin(self, group: dict[str, Any], param: Tensor, kept: dict[str, Any], like: Tensor) -> None:
        kept["step"] = kept_number(param)
        kept["mu_product"] = kept_number(param, 1.0)
        super()._begin(group, param, kept, like)


def nadam(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor],
    mu_products: list[Tensor],
    state_steps: list[Tensor],
    decoupled_weight_decay: bool = False,
    foreach: bool | None = None,
    capturable: bool = False,
    differentiable: bool = False,
    has_complex: bool = False,
    maximize: bool = False,
    *,
    beta1: float,
    beta2: float,
    lr: float | Tensor,
    weight_decay: float,
    momentum_decay: float,
    eps: float,
) -> None:
    """One step of NAdam over lists: what is kept beside each parameter is the caller's, and changes in place."""
    group = {
        "lr": lr,
        "betas": (beta1, beta2),
        "eps": eps,
        "weight_decay": weight_decay,
        "momentum_decay": momentum_decay,
        "decoupled_weight_decay": decoupled_weight_decay,
        "maximize": maximize,
        "capturable": capturable,
        "differentiable": differentiable,
    }
    kept: Lists = {"exp_avg": exp_avgs, "exp_avg_sq": exp_avg_sqs, "mu_product": mu_products, "step": state_steps}
    step_lists(NAdam, group, params, grads, kept)
