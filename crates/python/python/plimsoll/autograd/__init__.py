"""Gradients: of chosen tensors, custom functions (`function`), the graph itself (`graph`), derivatives of functions
(`functional`), finite differences (`gradcheck`) and anomaly mode."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Union, overload

from .. import _plimsoll
from .._modes import enable_grad as enable_grad
from .._modes import inference_mode as inference_mode
from .._modes import no_grad as no_grad
from .._modes import set_grad_enabled as set_grad_enabled
from .._plimsoll import Tensor
from . import function as function
from . import grad_mode as grad_mode
from . import graph as graph
from . import variable as variable
from .anomaly_mode import detect_anomaly as detect_anomaly
from .anomaly_mode import set_detect_anomaly as set_detect_anomaly
from .function import Function as Function
from .grad_mode import _force_original_view_tracking as _force_original_view_tracking
from .grad_mode import is_multithreading_enabled as is_multithreading_enabled
from .grad_mode import is_view_replay_enabled as is_view_replay_enabled
from .grad_mode import set_multithreading_enabled as set_multithreading_enabled
from .variable import Variable as Variable

if TYPE_CHECKING:
    from . import functional as functional
    from . import profiler as profiler
    from . import profiler_util as profiler_util


_Place = Union[Tensor, graph.GradientEdge]


def _list(tensors: _Place | Sequence[_Place | None] | None) -> list[Any]:
    if tensors is None:
        return []
    return [tensors] if isinstance(tensors, (Tensor, graph.GradientEdge)) else list(tensors)


def _asked_for(function: str, inputs: Any) -> list[Any]:
    """What gradients are asked for; of a dictionary its values."""
    if not isinstance(inputs, Mapping):
        return _list(inputs)
    if type(inputs) is not dict:
        kind = type(inputs).__name__
        raise TypeError(f"`inputs` argument to `{function}()` must be a dict, not {kind}. Give dict(inputs)")
    return list(inputs.values())


def _check_shapes(outputs: list[Any], grads: list[Any]) -> None:
    for index, (output, grad) in enumerate(zip(outputs, grads)):
        if grad is not None and not isinstance(grad, Tensor):
            raise TypeError(f"gradients can be either Tensors or None, but got {type(grad).__name__}")
        if grad is not None and isinstance(output, Tensor) and grad.shape != output.shape:
            raise RuntimeError(
                f"Mismatch in shape: grad_output[{index}] has a shape of {grad.shape} and output[{index}] has a shape of {output.shape}."
            )


def kineto_available() -> bool:
    """Whether the profiler is PyTorch's Kineto; here it is another."""
    return False


def backward(
    tensors: _Place | Sequence[_Place],
    grad_tensors: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Tensor | Sequence[Tensor | None] | None = None,
    inputs: _Place | Sequence[_Place] | dict[Any, _Place] | None = None,
) -> None:
    """Computes the gradients of everything that led to `tensors` and adds them to the leaves, or to `inputs` alone. Both may
    be edges of the graph (`graph.GradientEdge`); a gradient that arrives at one which is no leaf's is not kept.
    Each starts from its gradient in `grad_tensors`, or from one if it has a single element."""
    if grad_variables is not None:
        if grad_tensors is not None:
            raise RuntimeError("grad_variables is the old name of grad_tensors; give one of them")
        warnings.warn("grad_variables is deprecated; use grad_tensors", FutureWarning, stacklevel=2)
        grad_tensors = grad_variables
    asked = None if inputs is None else _asked_for("backward", inputs)
    tensors = _list(tensors)
    grads = [None] * len(tensors) if grad_tensors is None else _list(grad_tensors)
    _check_shapes(tensors, grads)
    _plimsoll._backward(tensors, grads, retain_graph, create_graph, asked)


def _grad_of_each(
    outputs: list[_Place],
    inputs: list[_Place],
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


@overload
def grad(
    outputs: _Place | Sequence[_Place],
    inputs: dict[Any, _Place],
    grad_outputs: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> dict[Any, Tensor]: ...


@overload
def grad(
    outputs: _Place | Sequence[_Place],
    inputs: _Place | Sequence[_Place],
    grad_outputs: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor, ...]: ...


def grad(
    outputs: _Place | Sequence[_Place],
    inputs: _Place | Sequence[_Place] | dict[Any, _Place],
    grad_outputs: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> Any:
    """The gradients of `outputs` by `inputs`, by name if `inputs` is a dictionary, without touching any `grad`. Inputs that
    the outputs do not depend on are an error, or get None with `allow_unused`, or zeros with `materialize_grads`. With
    `is_grads_batched` the first dimension of each gradient in `grad_outputs` counts several of them, and so does that of the
    results. Edges of the graph stand for tensors as in `backward`. `only_inputs` is no longer used."""
    if materialize_grads and allow_unused is False:
        raise ValueError("Expected allow_unused to be True or not passed when materialize_grads=True: unused inputs get zeros")
    if not only_inputs:
        warnings.warn("only_inputs argument is deprecated and is ignored; use backward to reach other leaves", FutureWarning, stacklevel=2)
    names = list(inputs) if type(inputs) is dict else None
    given, unused = _asked_for("grad", inputs), bool(allow_unused) or materialize_grads
    outputs, grads = _list(outputs), _list(grad_outputs)
    if not is_grads_batched:
        _check_shapes(outputs, grads)
    compute = _grad_of_each if is_grads_batched else _plimsoll.grad
    found = compute(outputs, given, grads, retain_graph, create_graph, unused)
    if materialize_grads:
        if any(one is None and not isinstance(x, Tensor) for x, one in zip(given, found, strict=True)):
            raise RuntimeError("materialize_grads cannot be used when the given input is a GradientEdge: it has no gradient")
        found = [
            _plimsoll.zeros_like(x, requires_grad=create_graph) if one is None else one
            for x, one in zip(given, found, strict=True)
        ]
    return tuple(found) if names is None else dict(zip(names, found, strict=True))


from .gradcheck import GradcheckError as GradcheckError  # noqa: E402
from .gradcheck import gradcheck as gradcheck  # noqa: E402
from .gradcheck import gradgradcheck as gradgradcheck  # noqa: E402

_LAZY = ("functional", "profiler", "profiler_util")


def __getattr__(name: str) -> Any:
    """Loads these when they are first named."""
    if name not in _LAZY:
        raise AttributeError(f"module 'plimsoll.autograd' has no attribute '{name}'")
    import importlib

    return importlib.import_module(f".{name}", __name__)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
