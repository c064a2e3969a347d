"""Functions and modules whose forward and backward passes are captured graphs: `make_graphed_callables`."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .. import _plimsoll, autograd
from .._plimsoll import Stream, Tensor
from ..autograd.function import once_differentiable
from ..utils import _pytree
from . import streams
from ._place import place
from .graphs import CUDAGraph, graph, graph_pool_handle

if TYPE_CHECKING:
    from ..nn import Module


def _module(call: Any) -> Module | None:
    """The callable if it is a module. Importing `cuda` imports no modules."""
    from ..nn import Module

    return call if isinstance(call, Module) else None


class _Passes:
    """One callable: what its graphs read and write, and the graphs themselves."""

    def __init__(self, call: Callable[..., Any], args: Any) -> None:
        self.call = call
        self.args = args
        self.given = tuple(_pytree.tree_leaves(args))
        if not all(isinstance(arg, Tensor) for arg in self.given):
            raise AssertionError("make_graphed_callables: sample_args are tensors, and nothing else")
        module = _module(call)
        if module is not None:
            if module._backward_hooks or module._forward_hooks or module._forward_pre_hooks:
                raise AssertionError("make_graphed_callables: the module has hooks already; register them afterwards")
            if any(buffer.requires_grad for buffer in module.buffers()):
                raise AssertionError("make_graphed_callables: only parameters of a module may need gradients")
        self.parameters: tuple[Tensor, ...] = () if module is None else tuple(module.parameters())
        self.inputs = self.given + self.parameters
        self.forward, self.backward = CUDAGraph(), CUDAGraph()
        self.outputs: tuple[Tensor, ...] = ()
        self.shape: Any = None
        # Where gradients of the outputs are put, and those of the inputs found; None where there is none.
        self.output_grads: tuple[Tensor | None, ...] = ()
        self.input_grads: tuple[Tensor | None, ...] = ()

    def gradients(self, outputs: Any, output_grads: Any, allow_unused: bool) -> tuple[Tensor | None, ...]:
        """The gradients of all inputs, None for those that need none."""
        wanted = tuple(each for each in self.inputs if each.requires_grad)
        found = iter(autograd.grad(outputs, wanted, output_grads, allow_unused=allow_unused))
        return tuple(next(found) if each.requires_grad else None for each in self.inputs)

    def warm_up(self, rounds: int, allow_unused: bool) -> None:
        """Runs both passes, so that nothing is done for the first time while they are captured."""
        for _ in range(rounds):
            outputs = [each for each in _pytree.tree_leaves(self.call(*self.args)) if each.requires_grad]
            if outputs:
                self.gradients(outputs, [_plimsoll.empty_like(each) for each in outputs], allow_unused)

    def capture_forward(self, **how: Any) -> None:
        with graph(self.forward, **how):
            made = self.call(*self.args)
        leaves, self.shape = _pytree.tree_flatten(made)
        self.outputs = tuple(leaves)

    def capture_backward(self, allow_unused: bool, **how: Any) -> None:
        self.output_grads = tuple(_plimsoll.empty_like(each) if each.requires_grad else None for each in self.outputs)
        outputs = [each for each in self.outputs if each.requires_grad]
        if not outputs:
            self.input_grads = (None,) * len(self.inputs)
            return
        with graph(self.backward, **how):
            grads = [each for each in self.output_grads if each is not None]
            self.input_grads = self.gradients(outputs, grads, allow_unused)

    def __call__(self, *args: Any) -> Any:
        leaves = _Graphed.apply(self, *_pytree.tree_leaves(args), *self.parameters)
        return _pytree.tree_unflatten(leaves, self.shape)


class _Graphed(autograd.Function):
    """A node of the graph of gradients whose passes are replays."""

    @staticmethod
    def forward(ctx: Any, passes: _Passes, *inputs: Tensor) -> tuple[Tensor, ...]:
        ctx.passes = passes
        # Parameters are where they were when they were captured.
        for own, given in zip(passes.given, inputs, strict=False):
            if own.data_ptr() != given.data_ptr():
                own.detach().copy_(given)
        passes.forward.replay()
        return tuple(each.detach() for each in passes.outputs)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        passes = ctx.passes
        for own, given in zip(passes.output_grads, grads, strict=True):
            if own is not None and own.data_ptr() != given.data_ptr():
                own.copy_(given)
        passes.backward.replay()
        return (None, *(None if each is None else each.detach() for each in passes.input_grads))


def _graphed_module(module: Module, passes: _Passes) -> Module:
    """Has a module run its graphs while it is in the mode that they were captured in."""
    # A module that held itself by its own `forward` would wait for the garbage collector.
    itself, training = weakref.ref(module), module.training
    before: Any = module.forward
    is_method = getattr(before, "__self__", None) is module
    usual = before.__func__ if is_method else before
    passes.call = usual
    del before

    def forward(*args: Any, **kwargs: Any) -> Any:
        own = itself()
        if own is None:
            raise RuntimeError("forward: the module of these graphs is gone")
        if own.training == training:
            return passes(*args, **kwargs)
        return usual(own, *args, **kwargs) if is_method else usual(*args, **kwargs)

    module.forward = forward  # type: ignore[method-assign]
    return module


def make_graphed_callables(
    callables: Any,
    sample_args: Any,
    num_warmup_iters: int = 3,
    allow_unused_input: bool = False,
    pool: Any = None,
    capture_error_mode: str = "global",
    enable_annotations: bool = False,
) -> Any:
    """Gives functions or modules of tensors whose forward and backward passes are graphs, captured with `sample_args`.

    Several of them, in a tuple, run in this order and share a pool. Shapes and which inputs need gradients are those of
    the samples; a module runs its graphs in the mode (training or not) that it is in now, and as usual in the other.

    >>> import plimsoll as pm
    >>> gpu = pm.stand_in()  # or "cuda"
    >>> def square(x):
    ...     return x * x
    >>> sample = pm.zeros(2, device=gpu, requires_grad=True)
    >>> graphed = pm.cuda.make_graphed_callables(square, (sample,))
    >>> x = pm.tensor([2.0, 3.0], device=gpu, requires_grad=True)
    >>> graphed(x).sum().backward()
    >>> x.grad.tolist()
    [4.0, 6.0]
    """
    if _plimsoll.is_autocast_enabled() and _plimsoll.is_autocast_cache_enabled():
        raise RuntimeError("make_graphed_callables: autocast keeps casts of parameters; pass cache_enabled=False to it")
    several = isinstance(callables, tuple)
    pairs = zip(callables, sample_args, strict=True) if several else [(callables, sample_args)]
    parts = [_Passes(call, args) for call, args in pairs]
    device = next((each.device for part in parts for each in part.inputs), None) or place()
    stream = Stream(device)
    how: dict[str, Any] = {
        "pool": graph_pool_handle() if pool is None else pool,
        "stream": stream,
        "capture_error_mode": capture_error_mode,
        "enable_annotations": enable_annotations,
    }
    _plimsoll.synchronize(device)
    with streams.stream(stream):
        for part in parts:
            part.warm_up(num_warmup_iters, allow_unused_input)
    _plimsoll.synchronize(device)
    # In the order of their replays, since they share a pool.
    for part in parts:
        part.capture_forward(**how)
    for part in reversed(parts):
        part.capture_backward(allow_unused_input, **how)
    modules = [_module(part.call) for part in parts]
    made = tuple(p if m is None else _graphed_module(m, p) for m, p in zip(modules, parts, strict=True))
    return made if several else made[0]
