"""Adagrad: steps that shrink with the sum of the squares of all gradients."""

from __future__ import annotations

from typing import Any

from .. import _plimsoll
from .._plimsoll import Tensor
from ._fused import FusedOptimizer, check_lr, check_number, kept_number
from ._lists import Lists, step_lists


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


def adagrad(
    params: list[Tensor],
    grads: list[Tensor],
    state_sums: list[Tensor],
    state_steps: list[Tensor],
    fused: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    has_sparse_grad: bool = False,
    foreach: bool | None = None,
    differentiable: bool = False,
    has_complex: bool = False,
    *,
    lr: float | Tensor,
    weight_decay: float,
    lr_decay: float,
    eps: float,
    maximize: bool,
) -> None:
    """One step of Adagrad over lists: what is kept beside each parameter is the caller's, and changes in place."""
    group = {
        "lr": lr,
        "lr_decay": lr_decay,
        "eps": eps,
        "weight_decay": weight_decay,
        "maximize": maximize,
        "differentiable": differentiable,
        "fused": fused,
    }
    kept: Lists = {"sum": state_sums, "step": state_steps}
    step_lists(Adagrad, group, params, grads, kept, grad_scale, found_inf)
