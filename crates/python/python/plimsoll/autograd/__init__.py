"""Gradients: of chosen tensors, custom functions (`function`), the graph itself (`graph`), derivatives of functions
(`functional`), finite differences (`gradcheck`) and anomaly mode."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from .. import _plimsoll
from .._modes import enable_grad as enable_grad
from .._modes import inference_mode as inference_mode
from .._modes import no_grad as no_grad
from .._modes import set_grad_enabled as set_grad_enabled
from .._plimsoll import Tensor
from . import function as function
from . import grad_mode as grad_mode
from . import graph as graph
from . import profiler as profiler
from . import profiler_util as profiler_util
from .anomaly_mode import detect_anomaly as detect_anomaly
from .anomaly_mode import set_detect_anomaly as set_detect_anomaly
from .function import Function as Function
from .grad_mode import set_multithreading_enabled as set_multithreading_enabled
from .variable import Variable as Variable


def _list(tensors: Tensor | Sequence[Tensor | None] | None) -> list:
    if tensors is None:
        return []
    return [tensors] if isinstance(tensors, Tensor) else list(tensors)


def backward(
    tensors: Tensor | Sequence[Tensor],
    grad_tensors: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Tensor | Sequence[Tensor | None] | None = None,
    inputs: Tensor | Sequence[Tensor] | None = None,
) -> None:
    """Computes the gradients of everything that led to `tensors` and adds them to the leaves, or to `inputs` alone.
    Each starts from its gradient in `grad_tensors`, or from one if it has a single element."""
    if grad_variables is not None:
        if grad_tensors is not None:
            raise RuntimeError("grad_variables is the old name of grad_tensors; give one of them")
        warnings.warn("grad_variables is deprecated; use grad_tensors", FutureWarning, stacklevel=2)
        grad_tensors = grad_variables
    tensors = _list(tensors)
    grads = [None] * len(tensors) if grad_tensors is None else _list(grad_tensors)
    _plimsoll._backward(tensors, grads, retain_graph, create_graph, inputs)


def _grad_of_each(
    outputs: list[Tensor],
    inputs: list[Tensor],
    grad_outputs: list[Tensor | None],
    retain_graph: bool | None,
    create_graph: bool,
    allow_unused: bool,
) -> list[Tensor | None]:
    """A pass for each gradient along the first dimension; what was saved is kept until the last."""
    counts = {grad.size(0) for grad in grad_outputs if grad is not None}
    if len(counts) != 1 or counts == {0}:
        raise RuntimeError(
            "is_grads_batched: the first dimension of each tensor in grad_outputs counts gradients, as many in all of them and "
            f"at least one, not {sorted(counts)}"
        )
    (count,) = counts
    passes = []
    for at in range(count):
        grads = [None if grad is None else grad[at] for grad in grad_outputs]
        keeps = retain_graph if at == count - 1 else True
        passes.append(_plimsoll.grad(outputs, inputs, grads, keeps, create_graph, allow_unused))
    return [None if parts[0] is None else _plimsoll.stack(parts) for parts in zip(*passes)]


def grad(
    outputs: Tensor | Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor],
    grad_outputs: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor | None, ...]:
    """The gradients of `outputs` by `inputs`, without touching any `grad`. Inputs that the outputs do not depend on are
    an error, or get None with `allow_unused`, or zeros with `materialize_grads`. With `is_grads_batched` the first
    dimension of each gradient in `grad_outputs` counts several of them, and so does that of the results."""
    if materialize_grads and allow_unused is False:
        raise ValueError("materialize_grads gives unused inputs zeros, so allow_unused cannot be False; leave it out")
    inputs, unused = _list(inputs), bool(allow_unused) or materialize_grads
    compute = _grad_of_each if is_grads_batched else _plimsoll.grad
    found = compute(_list(outputs), inputs, _list(grad_outputs), retain_graph, create_graph, unused)
    if materialize_grads:
        found = [_plimsoll.zeros_like(x) if grad is None else grad for x, grad in zip(inputs, found, strict=True)]
    return tuple(found)


from . import functional as functional  # noqa: E402
from .gradcheck import GradcheckError as GradcheckError  # noqa: E402
from .gradcheck import gradcheck as gradcheck  # noqa: E402
from .gradcheck import gradgradcheck as gradgradcheck  # noqa: E402
