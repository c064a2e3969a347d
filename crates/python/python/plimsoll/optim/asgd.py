"""Averaged stochastic gradient descent."""

from __future__ import annotations

from typing import Any

from .. import _plimsoll
from .._modes import enable_grad
from .._plimsoll import Tensor
from ._differentiable import next_rate_and_share, recorded_step
from ._fused import check_capturable, check_lr, check_number, kept_number
from ._lists import Lists, step_lists
from ._one_by_one import OneByOne


class ASGD(OneByOne):
    """Steps along the gradient by a rate that falls, and keeps the mean of the parameters from step `t0` on, as `ax`."""

    _absent = {**OneByOne._absent, "differentiable": False, "capturable": False}
    _kept_numbers = ("step", "eta", "mu")

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_lr(lr)
        check_number("lambd value", lambd)
        check_number("alpha value", alpha)
        check_number("weight_decay value", weight_decay)
        defaults = {
            "lr": lr,
            "lambd": lambd,
            "alpha": alpha,
            "t0": t0,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _begin(self, group: dict[str, Any], param: Tensor, kept: dict[str, Any]) -> None:
        kept["step"] = kept_number(param)
        kept["eta"] = kept_number(param, float(group["lr"]))
        kept["mu"] = kept_number(param, 1.0)
        kept["ax"] = _plimsoll.zeros_like(param)

    def _step_one(self, group: dict[str, Any], param: Tensor, grad: Tensor) -> None:
        check_capturable(group, param, "params, mus, etas, and state_steps")
        if not self.defaults.get("differentiable"):
            super()._step_one(group, param, grad)
            return
        self._begun(group, param)
        with enable_grad():
            recorded_step("asgd", group, param, grad, self.state[param])

    def _update(self, group: dict[str, Any], param: Tensor, grad: Tensor, kept: dict[str, Any]) -> None:
        kept["step"].add_(1)
        if group["weight_decay"] != 0:
            grad = grad.add(param, alpha=group["weight_decay"])
        eta, mu = float(kept["eta"]), float(kept["mu"])
        param.mul_(1 - group["lambd"] * eta)
        param.add_(grad, alpha=-eta)
        if mu != 1:
            kept["ax"].lerp_(param, mu)
        else:
            kept["ax"].copy_(param)
        next_rate_and_share(group, kept)


def asgd(
    params: list[Tensor],
    grads: list[Tensor],
    axs: list[Tensor],
    mus: list[Tensor],
    etas: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    maximize: bool = False,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    *,
    lambd: float,
    lr: float | Tensor,
    t0: float,
    alpha: float,
    weight_decay: float,
) -> None:
    """One step of ASGD over lists: what is kept beside each parameter is the caller's, and changes in place."""
    group = {
        "lr": lr,
        "lambd": lambd,
        "alpha": alpha,
        "t0": t0,
        "weight_decay": weight_decay,
        "maximize": maximize,
        "capturable": capturable,
        "differentiable": differentiable,
    }
    kept: Lists = {"ax": axs, "mu": mus, "eta": etas, "step": state_steps}
    step_lists(ASGD, group, params, grads, kept)
