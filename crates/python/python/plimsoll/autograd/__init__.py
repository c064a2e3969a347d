"""Gradients: of chosen tensors, custom functions (`function`), the graph itself (`graph`), derivatives of functions
(`functional`), finite differences (`gradcheck`) and anomaly mode."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

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
from . import variable as variable
from .anomaly_mode import detect_anomaly as detect_anomaly
from .anomaly_mode import set_detect_anomaly as set_detect_anomaly
from .function import Function as Function
from .grad_mode import _force_original_view_tracking as _force_original_view_tracking
from .grad_mode import is_multithreading_enabled as is_multithreading_enabled
from .grad_mode import is_view_replay_enabled as is_view_replay_enabled
from .grad_mode import set_multithreading_enabled as set_multithreading_enabled
from .variable import Variable as Variable


def _list(tensors: Tensor | Sequence[Tensor | None] | None) -> list:
    if tensors is None:
        return []
    return [tensors] if isinstance(tensors, (Tensor, graph.GradientEdge)) else list(tensors)


def _check_shapes(outputs: list, grads: list) -> None:
    for index, (output, grad) in enumerate(zip(outputs, grads)):
        if grad is not None and grad.shape != output.shape:
            raise RuntimeError(
                f"Mismatch in shape: grad_output[{index}] has a shape of {grad.shape} and output[{index}] has a shape of {output.shape}."
            )


def kineto_available() -> bool:
    """Whether the profiler is PyTorch's Kineto; here it is another."""
    return False


def _standing(places: list) -> list:
    """Tensors as they are; where the graph is asked at a place by its edge, a tensor that stands there."""
    return [place.node._stand_in(place.output_nr) if isinstance(place, graph.GradientEdge) else place for place in places]


def _chosen(function: str, inputs: Any) -> list:
    """The tensors that gradients are asked for, at least one: a tensor, several, or the values of a dict."""
    if isinstance(inputs, Mapping):
        if type(inputs) is not dict:
            kind = type(inputs).__name__
            raise TypeError(f"`inputs` argument to `{function}()` must be a dict, not {kind}: other mappings are not supported")
        inputs = list(inputs.values())
    chosen = _list(inputs)
    if not chosen:
        raise RuntimeError(f"`inputs` argument to `{function}()` cannot be empty: there is nothing to compute gradients for")
    return chosen


def backward(
    tensors: Tensor | Sequence[Tensor],
    grad_tensors: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Tensor | Sequence[Tensor | None] | None = None,
    inputs: Tensor | Sequence[Tensor] | dict[str, Tensor] | None = None,
) -> None:
    """Computes the gradients of everything that led to `tensors` and adds them to the leaves, or to `inputs` alone.
    Each starts from its gradient in `grad_tensors`, or from one if it has a single element."""
    if grad_variables is not None:
        if grad_tensors is not None:
            raise RuntimeError("grad_variables is the old name of grad_tensors; give one of them")
        warnings.warn("grad_variables is deprecated; use grad_tensors", FutureWarning, stacklevel=2)
        grad_tensors = grad_variables
    if inputs is not None:
        inputs = _standing(_chosen("backward", inputs))
    tensors = _standing(_list(tensors))
    grads = [None] * len(tensors) if grad_tensors is None else _list(grad_tensors)
    _check_shapes(tensors, grads)
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
    inputs: Tensor | Sequence[Tensor] | dict[str, Tensor],
    grad_outputs: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> Any:
    """The gradients of `outputs` by `inputs`, without touching any `grad`. Inputs that the outputs do not depend on are
    an error, or get None with `allow_unused`, or zeros with `materialize_grads`. With `is_grads_batched` the first
    dimension of each gradient in `grad_outputs` counts several of them, and so does that of the results. A tuple in the order of
    the inputs; where these are a dict, a dict of the same keys. `only_inputs` is no longer used."""
    if materialize_grads and allow_unused is False:
        raise ValueError("Expected allow_unused to be True or not passed when materialize_grads=True: unused inputs get zeros")
    if not only_inputs:
        warnings.warn("only_inputs argument is deprecated and is ignored; use backward to reach other leaves", FutureWarning, stacklevel=2)
    names = list(inputs) if type(inputs) is dict else None
    chosen, unused = _chosen("grad", inputs), bool(allow_unused) or materialize_grads
    edges, inputs = [isinstance(place, graph.GradientEdge) for place in chosen], _standing(chosen)
    outputs, grads = _standing(_list(outputs)), _list(grad_outputs)
    if not is_grads_batched:
        _check_shapes(outputs, grads)
    compute = _grad_of_each if is_grads_batched else _plimsoll.grad
    found = compute(outputs, inputs, grads, retain_graph, create_graph, unused)
    if materialize_grads:
        if any(grad is None and edge for grad, edge in zip(found, edges, strict=True)):
            raise RuntimeError("materialize_grads cannot be used when the given input is a GradientEdge: it has no gradient")
        found = [
            _plimsoll.zeros_like(x).requires_grad_(create_graph) if grad is None else grad for x, grad in zip(inputs, found, strict=True)
        ]
    return tuple(found) if names is None else dict(zip(names, found, strict=True))


from . import functional as functional  # noqa: E402
from .gradcheck import GradcheckError as GradcheckError  # noqa: E402
from .gradcheck import gradcheck as gradcheck  # noqa: E402
from .gradcheck import gradgradcheck as gradgradcheck  # noqa: E402
