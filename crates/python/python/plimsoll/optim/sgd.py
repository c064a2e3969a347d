"""Stochastic gradient descent, with momentum or without."""

from __future__ import annotations

from typing import Any

from .. import _plimsoll
from .._modes import no_grad
from .._plimsoll import Tensor
from ._fused import _MASTER, FusedOptimizer, check_number
from ._lists import Lists, step_lists


class SGD(FusedOptimizer):
    """Stochastic gradient descent, with momentum (also Nesterov's) or without."""

    _rule = "sgd"
    _counts_steps = False
    _absent = {**FusedOptimizer._absent, "nesterov": False, "fused": False}

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float | Tensor = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
        master_weights: bool = False,
    ) -> None:
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        for name, value in (
            ("learning rate", lr),
            ("momentum value", momentum),
            ("weight_decay value", weight_decay),
        ):
            check_number(name, value)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
            "foreach": foreach,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults, master_weights)

    def _states(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ("momentum_buffer",) if group["momentum"] != 0 else ()

    def _begin_group(self, group: dict[str, Any], params: list[Tensor]) -> dict[Tensor, Tensor]:
        """The buffers of parameters that step for the first time. They have no values before they become the gradient, and
        are not beside their parameters: a step that fails before that leaves none."""
        fresh = {}
        for param in params:
            copied = self._copied(group, param)
            kept = self.state.get(param) or {}
            if group["momentum"] != 0 and kept.get("momentum_buffer") is None:
                with _plimsoll._Phase("optimizer", param):
                    like = kept[_MASTER] if copied else param.detach()
                    fresh[param] = _plimsoll.zeros_like(like).mark_optimizer_state()
        return fresh

    def _step_group(self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor], begun: Any) -> None:
        """Buffers that have no values yet become the gradient: an operation of their own at the first step."""
        fresh: dict[Tensor, Tensor] = begun
        has_momentum, copies = group["momentum"] != 0, bool(group.get("master_weights"))
        if not has_momentum and not copies:
            self._run(group, params, grads, [0.0, 0.0, False, False])
            return
        kinds = []
        for param in params:
            copied = self._copied(group, param)
            converts = False
            if has_momentum and param not in fresh:
                converts = self.state[param]["momentum_buffer"].dtype != param.dtype and not copied
            kinds.append((param in fresh, copied, converts))
        found = getattr(self, "found_inf", None)
        if found is not None and fresh and bool(found):
            # Buffers without values must not be taken for buffers with: the one case in which the host waits.
            return
        for kind in dict.fromkeys(kinds):
            is_fresh, copied, converts = kind
            chosen = [at for at, own in enumerate(kinds) if own == kind]
            some = ([params[at] for at in chosen], [grads[at] for at in chosen])
            if converts:
                for param, grad in zip(*some, strict=True):
                    self._step_converting(group, param, grad, self.state[param]["momentum_buffer"])
                continue
            numbers = [group["momentum"], group["dampening"], group["nesterov"], is_fresh]
            if is_fresh:
                self._run_first(group, *some, numbers, copied, fresh)
            else:
                self._run(group, *some, numbers, copied)

    def _run_first(
        self,
        group: dict[str, Any],
        params: list[Tensor],
        grads: list[Tensor],
        numbers: list[float],
        copied: bool,
        fresh: dict[Tensor, Tensor],
    ) -> None:
        """The step that gives buffers their values, and puts them beside their parameters."""
        for param in params:
            self.state[param]["momentum_buffer"] = fresh[param]
        try:
            self._run(group, params, grads, numbers, copied)
        except BaseException:
            for param in params:
                del self.state[param]["momentum_buffer"]
            raise

    def _step_converting(self, group: dict[str, Any], param: Tensor, grad: Tensor, buffer: Tensor) -> None:
        """A step whose buffer is of another dtype, as after `model.double()`, by operations that convert, as in PyTorch."""
        scale, found = getattr(self, "grad_scale", None), getattr(self, "found_inf", None)
        if found is not None and bool(found):
            return
        with no_grad(), _plimsoll._Phase("optimizer", param):
            grad = grad if scale is None else grad / scale
            grad = -grad if group["maximize"] else grad
            if group["weight_decay"] != 0:
                grad = grad.add(param, alpha=float(group["weight_decay"]))
            buffer.mul_(group["momentum"]).add_(grad, alpha=1 - group["dampening"])
            param.sub_((grad.add(buffer, alpha=group["momentum"]) if group["nesterov"] else buffer) * group["lr"])


def sgd(
    params: list[Tensor],
    d_p_list: list[Tensor],
    momentum_buffer_list: list[Tensor | None],
    has_sparse_grad: bool = False,
    foreach: bool | None = None,
    fused: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    *,
    weight_decay: float,
    momentum: float,
    lr: float | Tensor,
    dampening: float,
    nesterov: bool,
    maximize: bool,
) -> None:
    """One step of SGD over lists: what is kept beside each parameter is the caller's, and changes in place."""
    group = {
        "lr": lr,
        "momentum": momentum,
        "dampening": dampening,
        "weight_decay": weight_decay,
        "nesterov": nesterov,
        "maximize": maximize,
        "fused": fused,
    }
    kept: Lists = {"momentum_buffer": momentum_buffer_list}
    step_lists(SGD, group, params, d_p_list, kept, grad_scale, found_inf)
