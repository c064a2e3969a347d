"""Muon: steps of matrices along their momentum, whose singular values a short iteration brings near to 1."""

from __future__ import annotations

import math
from typing import Any

from .. import _plimsoll
from .._plimsoll import Tensor
from ._lists import step_lists
from ._one_by_one import OneByOne
from .optimizer import ParamsT

_LENGTHS = ("original", "match_rms_adamw", "spectral_unclamped")


class Muon(OneByOne):
    """Steps of matrices, and only of those, by their momentum made orthogonal. Biases, norms and embeddings are left to
    another optimizer.

    >>> import plimsoll
    >>> from plimsoll import nn, optim
    >>> layer = nn.Linear(4, 4, bias=False)
    >>> _ = nn.init.zeros_(layer.weight)
    >>> optimizer = optim.Muon(layer.parameters(), lr=0.1)
    >>> layer(plimsoll.eye(4)).trace().backward()
    >>> optimizer.step()
    >>> bool((layer.weight.diagonal() < -0.05).all())
    True
    """

    _absent: dict[str, Any] = {}

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.7750, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        for what, value in (("Learning rate", lr), ("momentum", momentum), ("weight decay", weight_decay)):
            if not 0.0 <= value:
                raise ValueError(f"{what} should be >= 0 but is: {value}")
        if adjust_lr_fn is not None and adjust_lr_fn not in _LENGTHS:
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        defaults = {
            "lr": lr,
            "weight_decay": weight_decay,
            "momentum": momentum,
            "nesterov": nesterov,
            "ns_coefficients": ns_coefficients,
            "eps": eps,
            "ns_steps": ns_steps,
            "adjust_lr_fn": adjust_lr_fn,
        }
        super().__init__(params, defaults)
        for group in self.param_groups:
            for param in group["params"]:
                if param.dim() != 2:
                    raise ValueError(
                        f"Muon only supports 2D parameters whereas we found a parameter with size: {param.size()}"
                    )

    def _begin(self, group: dict[str, Any], param: Tensor, kept: dict[str, Any]) -> None:
        assert param.grad is not None, "only parameters with gradients are stepped"
        kept["momentum_buffer"] = _plimsoll.zeros_like(param.grad)

    def _update(self, group: dict[str, Any], param: Tensor, grad: Tensor, kept: dict[str, Any]) -> None:
        lr, share = float(group["lr"]), group["momentum"]
        mean: Tensor = kept["momentum_buffer"]
        mean.lerp_(grad, 1 - share)
        along = grad.lerp(mean, share) if group["nesterov"] else mean
        along = _orthogonal(along, group["ns_coefficients"], group["ns_steps"], group["eps"])
        param.mul_(1 - lr * group["weight_decay"])
        param.add_(along, alpha=-lr * _length(group["adjust_lr_fn"], *param.shape))


def _length(rule: str | None, rows: int, columns: int) -> float:
    """By how much a step is longer than the learning rate, so that it is alike for matrices of all shapes."""
    if rule == "match_rms_adamw":
        return 0.2 * math.sqrt(max(rows, columns))
    ratio = rows / columns
    return math.sqrt(ratio if rule == "spectral_unclamped" else max(1, ratio))


def _orthogonal(matrix: Tensor, coefficients: tuple[float, float, float], steps: int, eps: float) -> Tensor:
    """The matrix with singular values near to 1, in bfloat16: each step puts them through an odd polynomial of degree 5,
    whose slope at 0 is so steep that a few steps are enough."""
    if steps >= 100:
        raise ValueError("Number of steps must be less than 100 for computational efficiency")
    if len(coefficients) != 3:
        raise ValueError("Coefficients must be a tuple of exactly 3 values")
    a, b, c = coefficients
    # The smaller side first: products of it with itself are the smaller ones.
    is_tall = matrix.size(0) > matrix.size(1)
    x = matrix.to(dtype=_plimsoll.bfloat16, copy=True)
    x = x.T if is_tall else x
    x = x.div_(x.norm().clamp(min=eps))
    for _ in range(steps):
        square = x @ x.T
        x = _plimsoll.addmm(x, _plimsoll.addmm(square, square, square, beta=b, alpha=c), x, beta=a)
    return x.T if is_tall else x


def muon(
    params: list[Tensor],
    grads: list[Tensor],
    muon_momentum_bufs: list[Tensor],
    *,
    foreach: bool | None = None,
    lr: float,
    weight_decay: float,
    momentum: float,
    nesterov: bool,
    ns_coefficients: tuple[float, float, float],
    ns_steps: int,
    eps: float,
    adjust_lr_fn: str | None,
    has_complex: bool,
) -> None:
    """One step of Muon over lists: what is kept beside each parameter is the caller's, and changes in place."""
    if foreach:
        raise RuntimeError("Foreach is not supported for Muon yet")
    if has_complex:
        raise ValueError("Complex parameters are not supported")
    group = {
        "lr": lr,
        "weight_decay": weight_decay,
        "momentum": momentum,
        "nesterov": nesterov,
        "ns_coefficients": ns_coefficients,
        "eps": eps,
        "ns_steps": ns_steps,
        "adjust_lr_fn": adjust_lr_fn,
    }
    step_lists(Muon, group, params, grads, {"momentum_buffer": muon_momentum_bufs})
