"""Rprop: steps by the sign of the gradient alone."""

from __future__ import annotations

from typing import Any

from .. import _plimsoll
from .._plimsoll import Tensor
from ._fused import FusedOptimizer, check_lr, kept_number
from ._lists import Lists, step_lists


class Rprop(FusedOptimizer):
    """Steps by the sign of the gradient alone; each element's step grows while the sign stays and shrinks where it turns."""

    _rule = "rprop"
    _absent = {**FusedOptimizer._absent, "capturable": False}

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        master_weights: bool = False,
    ) -> None:
        check_lr(lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        defaults = {
            "lr": lr,
            "etas": etas,
            "step_sizes": step_sizes,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults, master_weights)

    def _numbers(self, group: dict[str, Any]) -> list[float]:
        return [*group["etas"], *group["step_sizes"]]

    def _states(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ("prev", "step_size")

    def _begin(self, group: dict[str, Any], param: Tensor, kept: dict[str, Any], like: Tensor) -> None:
        kept["step"] = kept_number(param)
        kept["prev"] = _plimsoll.zeros_like(like)
        # An element's first step is as long as the learning rate.
        kept["step_size"] = _plimsoll.full_like(like, float(group["lr"]))


def rprop(
    params: list[Tensor],
    grads: list[Tensor],
    prevs: list[Tensor],
    step_sizes: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    capturable: bool = False,
    maximize: bool = False,
    differentiable: bool = False,
    has_complex: bool = False,
    *,
    step_size_min: float,
    step_size_max: float,
    etaminus: float,
    etaplus: float,
) -> None:
    """One step of Rprop over lists: what is kept beside each parameter is the caller's, and changes in place."""
    group = {
        "etas": (etaminus, etaplus),
        "step_sizes": (step_size_min, step_size_max),
        "lr": 0.0,
        "maximize": maximize,
        "capturable": capturable,
        "differentiable": differentiable,
    }
    kept: Lists = {"prev": prevs, "step_size": step_sizes, "step": state_steps}
    step_lists(Rprop, group, params, grads, kept)
