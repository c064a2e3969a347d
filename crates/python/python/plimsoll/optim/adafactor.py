"""Adafactor: Adam's division by the root of the mean square, whose means are kept by rows and columns."""

from __future__ import annotations

from typing import Any

from .. import _plimsoll
from .._facts import finfo
from .._plimsoll import Tensor
from ._fused import kept_number
from ._lists import Lists, step_lists
from ._one_by_one import OneByOne


class Adafactor(OneByOne):
    """Steps by the gradient over the root of its mean square, by a share of the parameter's own size. Of a matrix it keeps
    the means of its rows and of its columns, and not one for each element."""

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if not 0.0 <= lr:
            raise ValueError(f"Learning rate should be >= 0 but is: {lr}")
        if not 0.0 >= beta2_decay:
            raise ValueError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
        if eps[0] is not None and not 0.0 <= eps[0]:
            raise ValueError(f"epsilon1 should be >= 0 but is: {eps[0]}")
        if not 0.0 <= eps[1]:
            raise ValueError(f"epsilon2 should be >= 0 but is: {eps[1]}")
        if not 1.0 <= d:
            raise ValueError(f"Clipping threshold d should be >= 1 but is: {d}")
        if not 0.0 <= weight_decay:
            raise ValueError(f"weight_decay should be >= 0 but is: {weight_decay}")
        defaults = {
            "lr": lr,
            "beta2_decay": beta2_decay,
            "eps": eps,
            "d": d,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    def _begin(self, group: dict[str, Any], param: Tensor, kept: dict[str, Any]) -> None:
        grad = param.grad
        assert grad is not None  # parameters without one have no step
        kept["step"] = kept_number(param)
        if grad.dim() > 1:
            sizes = list(grad.shape)
            kept["row_var"] = grad.new_zeros([*sizes[:-1], 1])
            kept["col_var"] = grad.new_zeros([*sizes[:-2], 1, sizes[-1]])
        else:
            kept["variance"] = _plimsoll.zeros_like(grad)

    def _update(self, group: dict[str, Any], param: Tensor, grad: Tensor, kept: dict[str, Any]) -> None:
        lr, (eps1, eps2) = float(group["lr"]), group["eps"]
        eps1 = finfo(param.dtype).eps if eps1 is None else eps1
        kept["step"].add_(1)
        step = float(kept["step"])
        share = step ** group["beta2_decay"]
        size = max(eps2, float(param.norm(2)) / param.numel() ** 0.5) * min(lr, 1 / step**0.5)
        if group["weight_decay"] != 0:
            param.mul_(1 - lr * group["weight_decay"])
        update = _mean_square(grad, kept, share, eps1).clamp_(min=eps1 * eps1).rsqrt_().mul_(grad)
        clipped = max(1.0, float(update.norm(2)) / (update.numel() ** 0.5 * group["d"]))
        param.add_(update, alpha=-size / clipped)


def _mean_square(grad: Tensor, kept: dict[str, Any], share: float, least: float) -> Tensor:
    """Brings the means up to date; a new tensor of each element's estimate."""
    if grad.dim() <= 1:
        variance: Tensor = kept["variance"]
        return variance.lerp_(grad * grad, share).clone()
    rows: Tensor = kept["row_var"]
    columns: Tensor = kept["col_var"]
    for means, dim in ((rows, -1), (columns, -2)):
        means.lerp_(_plimsoll.linalg_vector_norm(grad, 2, dim, True).square_().div_(grad.size(dim)), share)
    return rows.matmul(columns).div_(rows.mean(-2, True).clamp_(min=least))


def adafactor(
    params: list[Tensor],
    grads: list[Tensor],
    row_vars: list[Tensor | None],
    col_vars: list[Tensor | None],
    variances: list[Tensor | None],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    has_complex: bool = False,
    *,
    d: float,
    lr: float | Tensor,
    beta2_decay: float,
    weight_decay: float,
    eps1: float | None,
    eps2: float,
    maximize: bool,
) -> None:
    """One step of Adafactor over lists: what is kept beside each parameter is the caller's, and changes in place."""
    group = {
        "lr": lr,
        "beta2_decay": beta2_decay,
        "eps": (eps1, eps2),
        "d": d,
        "weight_decay": weight_decay,
        "maximize": maximize,
    }
    kept: Lists = {"row_var": row_vars, "col_var": col_vars, "variance": variances, "step": state_steps}
    step_lists(Adafactor, group, params, grads, kept, grad_scale, found_inf)
