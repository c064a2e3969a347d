"""Gradients made smaller: to a norm of all of them together, or each element to a value."""

from __future__ import annotations

import warnings
from collections.abc import Generator, Iterable
from typing import Any

from ... import _plimsoll
from ... import linalg
from ..._modes import no_grad
from ..._plimsoll import Tensor


def _listed(tensors: Tensor | Iterable[Tensor]) -> list[Tensor]:
    return [tensors] if isinstance(tensors, Tensor) else list(tensors)


def _gradients_of(parameters: Tensor | Iterable[Tensor]) -> list[Tensor]:
    return [param.grad for param in _listed(parameters) if param.grad is not None]


def _alike(tensors: list[Tensor]) -> list[list[Tensor]]:
    """Tensors of one dtype and device together, in the order in which each kind comes first."""
    groups: dict[tuple[Any, Any], list[Tensor]] = {}
    for one in tensors:
        groups.setdefault((one.dtype, one.device), []).append(one)
    return list(groups.values())


def _is_one_operation(group: list[Tensor]) -> bool:
    """Whether such a group is one operation's work: of floats, on a device where a launch costs more than a small tensor.
    Classes of the program's own may see every operation."""
    first = group[0]
    return first.device.type != "cpu" and first.dtype.is_floating_point and all(type(one) is Tensor for one in group)


def _norms(group: list[Tensor], order: float) -> Tensor:
    if order == 2.0 and _is_one_operation(group):
        return _plimsoll._norms(group)
    return _plimsoll.stack([linalg.vector_norm(one, order) for one in group])


def get_total_norm(
    tensors: Tensor | Iterable[Tensor],
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """The norm of all tensors together, as if they were one vector."""
    given, order = _listed(tensors), float(norm_type)
    if not given:
        return _plimsoll.tensor(0.0)
    with no_grad():
        norms = [_norms(group, order).to(given[0].device) for group in _alike(given)]
        total = linalg.vector_norm(norms[0] if len(norms) == 1 else _plimsoll.cat(norms), order)
    if error_if_nonfinite and not bool(total.isfinite()):
        raise RuntimeError(
            f"The total norm of order {order} for gradients from `parameters` is non-finite, so it cannot be clipped. "
            "To disable this error and scale the gradients by the non-finite norm anyway, set "
            "`error_if_nonfinite=False`"
        )
    return total


def clip_grads_with_norm_(
    parameters: Tensor | Iterable[Tensor], max_norm: float, total_norm: Tensor, foreach: bool | None = None
) -> None:
    """Scales gradients down by `max_norm` over a norm that is known, where that is larger."""
    grads, bound = _gradients_of(parameters), float(max_norm)
    if not grads:
        return
    with no_grad():
        # The product with 1 costs less than to wait for the device's answer.
        scale = _plimsoll.clamp(bound / (total_norm + 1e-6), max=1.0)
        if foreach is not False and scale.dim() != 0:
            raise RuntimeError(
                f"scalar tensor expected to be 0 dim but it has {scale.dim()} dimensions and {scale.numel()} elements: "
                "`total_norm` is one number for all gradients"
            )
        for group in _alike(grads):
            own = scale.to(group[0].device)
            # float32 holds the factors of all dtypes but its double.
            if own.dim() == 0 and group[0].dtype != _plimsoll.float64 and _is_one_operation(group):
                factor = own.to(_plimsoll.float32)
                _plimsoll._amp_foreach_non_finite_check_and_unscale_(group, _plimsoll.zeros_like(factor), factor)
                continue
            for grad in group:
                grad.mul_(own)


def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scales gradients so that their norm together is at most `max_norm`; gives the norm they had."""
    params = _listed(parameters)
    if not params and isinstance(parameters, Generator):
        warnings.warn("`parameters` is an empty generator, no gradient clipping will occur.", stacklevel=2)
    total = get_total_norm(_gradients_of(params), norm_type, error_if_nonfinite, foreach)
    clip_grads_with_norm_(params, max_norm, total, foreach)
    return total


def clip_grad_norm(*args: Any, **kwargs: Any) -> Tensor:
    """The name of old of `clip_grad_norm_`."""
    warnings.warn(
        "`nn.utils.clip_grad_norm` is now deprecated in favor of `nn.utils.clip_grad_norm_`.",
        FutureWarning,
        stacklevel=2,
    )
    return clip_grad_norm_(*args, **kwargs)


def clip_grad_value_(
    parameters: Tensor | Iterable[Tensor], clip_value: float, foreach: bool | None = None
) -> None:
    """Moves elements of gradients into `[-clip_value, clip_value]`."""
    bound = float(clip_value)
    grads = _gradients_of(parameters)
    if not grads:
        raise RuntimeError("clip_grad_value_: no parameter has a gradient to clip; call it after `backward`")
    with no_grad():
        for grad in grads:
            grad.clamp_(min=-bound, max=bound)
