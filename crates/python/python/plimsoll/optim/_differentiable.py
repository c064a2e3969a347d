"""Steps that are recorded: `differentiable=True`. Each rule is written with tensor operations, one parameter at a time, so
that gradients flow through a step to what the gradients, the parameters, the states and the learning rate came from.

What is kept is made anew in each step, since graphs of earlier ones hold the old. The fused steps are in `_fused.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _plimsoll
from .._plimsoll import Tensor

Group = dict[str, Any]
Kept = dict[str, Any]


def _scalar(value: Any) -> Any:
    """A number, or a tensor without dimensions."""
    return value.squeeze() if isinstance(value, Tensor) and value.dim() != 0 else value


def _is_there(value: Any) -> bool:
    return isinstance(value, Tensor) or value != 0


def _decayed(group: Group, param: Tensor, grad: Tensor) -> Tensor:
    """The gradient with weight decay."""
    decay = group["weight_decay"]
    if not _is_there(decay):
        return grad
    # A copy, for the step writes to the parameter.
    return grad + param.clone() * decay if isinstance(decay, Tensor) else grad.add(param, alpha=decay)


def _shrunk_or_decayed(group: Group, param: Tensor, grad: Tensor, decoupled: bool) -> Tensor:
    if not decoupled:
        return _decayed(group, param, grad)
    if _is_there(group["weight_decay"]):
        param.mul_(1 - _scalar(group["lr"]) * group["weight_decay"])
    return grad


def _counted(kept: Kept) -> float:
    """The number of this step."""
    kept["step"] = kept["step"].detach() + 1
    return float(kept["step"])


def _means(group: Group, grad: Tensor, kept: Kept) -> tuple[Any, Any]:
    """Brings the running means of the gradients and of their squares up to date."""
    beta1, beta2 = (_scalar(beta) for beta in group["betas"])
    kept["exp_avg"] = kept["exp_avg"] + (grad - kept["exp_avg"]) * (1 - beta1)
    kept["exp_avg_sq"] = kept["exp_avg_sq"] * beta2 + grad * grad * (1 - beta2)
    return beta1, beta2


def _sgd(group: Group, param: Tensor, grad: Tensor, kept: Kept) -> None:
    grad = _decayed(group, param, grad)
    momentum = group["momentum"]
    if momentum != 0:
        buffer = kept.get("momentum_buffer")
        if buffer is None:
            # PyTorch lets no gradient through the first one.
            buffer = grad.detach().clone()
        else:
            buffer = buffer * momentum + grad * (1 - group["dampening"])
        kept["momentum_buffer"] = buffer
        grad = grad + buffer * momentum if group["nesterov"] else buffer
    param.sub_(grad * _scalar(group["lr"]))


def _adam(group: Group, param: Tensor, grad: Tensor, kept: Kept) -> None:
    step = _counted(kept)
    grad = _shrunk_or_decayed(group, param, grad, group["decoupled_weight_decay"])
    beta1, beta2 = _means(group, grad, kept)
    square = kept["exp_avg_sq"]
    if group["amsgrad"]:
        square = kept["max_exp_avg_sq"] = _plimsoll.maximum(kept["max_exp_avg_sq"], square)
    size = _scalar(group["lr"]) / (1 - beta1**step)
    param.sub_(kept["exp_avg"] * size / (square.sqrt() / (1 - beta2**step) ** 0.5 + group["eps"]))


def _nadam(group: Group, param: Tensor, grad: Tensor, kept: Kept) -> None:
    step = _counted(kept)
    lr, decay = _scalar(group["lr"]), group["momentum_decay"]
    grad = _shrunk_or_decayed(group, param, grad, group["decoupled_weight_decay"])
    beta1, beta2 = _means(group, grad, kept)
    mu, mu_next = (beta1 * (1.0 - 0.5 * 0.96 ** (at * decay)) for at in (step, step + 1))
    product = kept["mu_product"] = kept["mu_product"] * mu
    lower = (kept["exp_avg_sq"] / (1 - beta2**step)).sqrt() + group["eps"]
    own = grad * (lr * (1.0 - mu) / (1.0 - product))
    param.sub_((own + kept["exp_avg"] * (lr * mu_next / (1.0 - product * mu_next))) / lower)


def _radam(group: Group, param: Tensor, grad: Tensor, kept: Kept) -> None:
    step = _counted(kept)
    grad = _shrunk_or_decayed(group, param, grad, group["decoupled_weight_decay"])
    beta1, beta2 = map(float, _means(group, grad, kept))
    change = kept["exp_avg"] / (1 - beta1**step) * _scalar(group["lr"])
    most = 2 / (1 - beta2) - 1
    length = most - 2 * step * beta2**step / (1 - beta2**step)
    if length > 5.0:
        rectified = ((length - 4) * (length - 2) * most / ((most - 4) * (most - 2) * length)) ** 0.5
        change = change * (rectified * (1 - beta2**step) ** 0.5) / (kept["exp_avg_sq"].sqrt() + group["eps"])
    param.sub_(change)


def _adagrad(group: Group, param: Tensor, grad: Tensor, kept: Kept) -> None:
    step = _counted(kept)
    grad = _decayed(group, param, grad)
    kept["sum"] = kept["sum"] + grad * grad
    rate = _scalar(group["lr"]) / (1 + (step - 1) * group["lr_decay"])
    param.sub_(grad * rate / (kept["sum"].sqrt() + group["eps"]))


def _adadelta(group: Group, param: Tensor, grad: Tensor, kept: Kept) -> None:
    _counted(kept)
    rho, eps = group["rho"], group["eps"]
    grad = _decayed(group, param, grad)
    kept["square_avg"] = kept["square_avg"] * rho + grad * grad * (1 - rho)
    change = (kept["acc_delta"] + eps).sqrt() / (kept["square_avg"] + eps).sqrt() * grad
    kept["acc_delta"] = kept["acc_delta"] * rho + change * change * (1 - rho)
    param.sub_(change * _scalar(group["lr"]))


def _rmsprop(group: Group, param: Tensor, grad: Tensor, kept: Kept) -> None:
    _counted(kept)
    alpha = group["alpha"]
    grad = _decayed(group, param, grad)
    square = kept["square_avg"] = kept["square_avg"] * alpha + grad * grad * (1 - alpha)
    if group["centered"]:
        mean = kept["grad_avg"] = kept["grad_avg"] + (grad - kept["grad_avg"]) * (1 - alpha)
        square = square - mean * mean
    change = grad / (square.sqrt() + group["eps"])
    if group["momentum"] > 0:
        change = kept["momentum_buffer"] = kept["momentum_buffer"] * group["momentum"] + change
    param.sub_(change * _scalar(group["lr"]))


def _rprop(group: Group, param: Tensor, grad: Tensor, kept: Kept) -> None:
    _counted(kept)
    (less, more), (least, most) = group["etas"], group["step_sizes"]
    sign = (grad * kept["prev"]).sign()
    factor = _plimsoll.where(sign > 0, more, _plimsoll.where(sign < 0, less, _plimsoll.ones_like(sign)))
    size = kept["step_size"] = (kept["step_size"] * factor).clamp(least, most)
    # Where the sign turned, nothing moves, and the next step does not look back.
    grad = kept["prev"] = _plimsoll.where(sign < 0, _plimsoll.zeros_like(grad), grad)
    param.sub_(grad.sign() * size)


def _adamax(group: Group, param: Tensor, grad: Tensor, kept: Kept) -> None:
    step = _counted(kept)
    beta1, beta2 = (_scalar(beta) for beta in group["betas"])
    grad = _decayed(group, param, grad)
    kept["exp_avg"] = kept["exp_avg"] + (grad - kept["exp_avg"]) * (1 - beta1)
    kept["exp_inf"] = _plimsoll.maximum(kept["exp_inf"] * beta2, grad.abs() + group["eps"])
    param.sub_(kept["exp_avg"] * (_scalar(group["lr"]) / (1 - beta1**step)) / kept["exp_inf"])


def _lion(group: Group, param: Tensor, grad: Tensor, kept: Kept) -> None:
    beta1, beta2 = (_scalar(beta) for beta in group["betas"])
    grad = _shrunk_or_decayed(group, param, grad, True)
    mean = kept["exp_avg"]
    param.sub_((mean * beta1 + grad * (1 - beta1)).sign() * _scalar(group["lr"]))
    kept["exp_avg"] = mean * beta2 + grad * (1 - beta2)


def _asgd(group: Group, param: Tensor, grad: Tensor, kept: Kept) -> None:
    _counted(kept)
    grad = _decayed(group, param, grad)
    eta, mu = float(kept["eta"]), float(kept["mu"])
    param.mul_(1 - group["lambd"] * eta).sub_(grad * eta)
    kept["ax"] = param.clone() if mu == 1 else kept["ax"] + (param - kept["ax"]) * mu
    next_rate_and_share(group, kept)


def next_rate_and_share(group: Group, kept: Kept) -> None:
    """The rate `eta` and the share `mu` of ASGD's next step."""
    lr, step = float(group["lr"]), float(kept["step"])
    kept["eta"].fill_(lr / (1 + group["lambd"] * lr * step) ** group["alpha"])
    kept["mu"].fill_(1 / max(1, step - group["t0"]))


_STEPS: dict[str, Callable[[Group, Tensor, Tensor, Kept], None]] = {
    "sgd": _sgd,
    "adam": _adam,
    "nadam": _nadam,
    "radam": _radam,
    "adagrad": _adagrad,
    "adadelta": _adadelta,
    "rmsprop": _rmsprop,
    "rprop": _rprop,
    "adamax": _adamax,
    "lion": _lion,
    "asgd": _asgd,
}


def recorded_step(rule: str, group: Group, param: Tensor, grad: Tensor, kept: Kept) -> None:
    """One step of one parameter, recorded whatever the mode is. What is kept stays booked as an optimizer's."""
    with _plimsoll._Phase("optimizer", param):
        _STEPS[rule](group, param, -grad if group["maximize"] else grad, kept)
        for value in kept.values():
            if isinstance(value, Tensor):
                value.mark_optimizer_state()
