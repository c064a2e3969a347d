"""Checkpointing: functions whose saved tensors are not kept but made again, by running the function once more when
backward needs them. Rust does the work (`checkpoint/` of the tensor crate); this file has PyTorch's functions."""

from __future__ import annotations

import contextlib
import enum
import functools
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Any

from .. import _plimsoll
from .._modes import enable_grad, no_grad
from .._plimsoll import Tensor, is_grad_enabled
from .._plimsoll import _CheckpointError as CheckpointError
from .._plimsoll import _StopRecomputationError as _StopRecomputationError
from ..autograd import backward as _backward
from ..autograd.function import Function
from ..cuda import random as _cuda_random
from ..nn import functional
from ..nn.modules.module import Module
from ..ops import Operation, OpOverload, OpOverloadPacket
from ._pytree import tree_leaves

__all__ = [
    "CheckpointError",
    "CheckpointFunction",
    "CheckpointPolicy",
    "GraphExecGroup",
    "SelectiveCheckpointContext",
    "check_backward_validity",
    "checkpoint",
    "checkpoint_region",
    "checkpoint_sequential",
    "create_selective_checkpoint_contexts",
    "detach_variable",
    "get_device_states",
    "noop_context_fn",
    "set_checkpoint_debug_enabled",
    "set_checkpoint_early_stop",
    "set_device_states",
]

_debug_enabled: bool | None = None
_early_stop_enabled: bool | None = None


@contextlib.contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None) -> Iterator[None]:
    """While in force, it stands for the `debug` of every checkpoint; None leaves it to each."""
    global _debug_enabled
    before, _debug_enabled = _debug_enabled, enabled
    try:
        yield
    finally:
        _debug_enabled = before


@contextlib.contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """While in force, it stands for the `early_stop` of every checkpoint. Backward may run outside."""
    global _early_stop_enabled
    before, _early_stop_enabled = _early_stop_enabled, enable
    try:
        yield
    finally:
        _early_stop_enabled = before


def noop_context_fn() -> tuple[AbstractContextManager[Any], AbstractContextManager[Any]]:
    """The `context_fn` of a checkpoint that needs none."""
    return contextlib.nullcontext(), contextlib.nullcontext()


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """The inputs outside of every graph, those that require gradients as leaves."""
    if not isinstance(inputs, tuple):
        raise RuntimeError(f"Only tuple of tensors is supported. Got Unsupported input type: {type(inputs).__name__}")
    return tuple(x.detach().requires_grad_(x.requires_grad) if isinstance(x, Tensor) else x for x in inputs)


def check_backward_validity(inputs: Iterable[Any]) -> None:
    """Warns if no input requires gradients."""
    if not any(x.requires_grad for x in inputs if isinstance(x, Tensor)):
        warnings.warn("None of the inputs have requires_grad=True. Gradients will be None", stacklevel=2)


def get_device_states(*args: Any) -> tuple[list[int], list[Tensor]]:
    """The GPUs on which tensors among the arguments lie, one for each of these, and the states of their random numbers."""
    found = [x.get_device() for x in tree_leaves(args) if isinstance(x, Tensor) and x.device.type != "cpu"]
    return found, [_cuda_random.get_rng_state(index) for index in found]


def set_device_states(devices: Iterable[int], states: Iterable[Tensor], *, device_type: str | None = None) -> None:
    """Puts the states of random numbers that `get_device_states` gave back."""
    if device_type not in (None, "cuda"):
        raise RuntimeError(f"set_device_states: there are no states of the device type {device_type!r}, only of 'cuda'")
    for index, state in zip(devices, states):
        _cuda_random.set_rng_state(state, index)


class CheckpointFunction(Function):
    """The reentrant form: not recorded at all, and backward runs it recorded, with a backward inside."""

    @staticmethod
    def forward(ctx: Any, run_function: Callable[..., Any], preserve_rng_state: bool, *args: Any) -> Any:
        check_backward_validity(args)
        ctx.run_function = run_function
        ctx.surroundings = _plimsoll._Surroundings(preserve_rng_state)
        ctx.inputs = tuple(None if isinstance(arg, Tensor) else arg for arg in args)
        ctx.tensor_indices = [index for index, arg in enumerate(args) if isinstance(arg, Tensor)]
        ctx.save_for_backward(*(args[index] for index in ctx.tensor_indices))
        with no_grad():
            return run_function(*args)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        if not _plimsoll._is_checkpoint_valid():
            raise RuntimeError(
                "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or passing an `inputs` parameter to "
                ".backward(). Set use_reentrant=False, or call .backward() without `inputs`."
            )
        args = list(ctx.inputs)
        for index, tensor in zip(ctx.tensor_indices, ctx.saved_tensors, strict=True):
            args[index] = tensor
        inputs = detach_variable(tuple(args))

        def again() -> Any:
            with enable_grad():
                return ctx.run_function(*inputs)

        outputs = ctx.surroundings.resume(again)
        outputs = (outputs,) if isinstance(outputs, Tensor) else outputs
        pairs = [(out, grad) for out, grad in zip(outputs, grads) if isinstance(out, Tensor) and out.requires_grad]
        if not pairs:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
        _backward([out for out, _ in pairs], [grad for _, grad in pairs])
        return None, None, *(x.grad if isinstance(x, Tensor) else None for x in inputs)


class _CheckpointedFunction:
    """A function that is checkpointed whenever it is called; as a method, with its object."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        functools.update_wrapper(self, function)
        self._function, self._options = function, options

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return _checkpoint(self._function, args, kwargs, **self._options)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        return _CheckpointedFunction(self._function.__get__(instance, owner), self._options)


def checkpoint(
    function: Callable[..., Any] | None = None,
    *args: Any,
    use_reentrant: bool | None = None,
    preserve_rng_state: bool = True,
    context_fn: Callable[[], tuple[AbstractContextManager[Any], AbstractContextManager[Any]]] = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    respect_saved_tensors_hooks: bool | None = None,
    **kwargs: Any,
) -> Any:
    """Runs `function` on the arguments and keeps only them for backward, which runs it again for what else it needs.
    Without a function, a decorator with these options."""
    options: dict[str, Any] = {
        "use_reentrant": use_reentrant,
        "preserve_rng_state": preserve_rng_state,
        "context_fn": context_fn,
        "determinism_check": determinism_check,
        "debug": debug,
        "early_stop": early_stop,
        "respect_saved_tensors_hooks": respect_saved_tensors_hooks,
    }
    if function is None and not args:
        if kwargs:
            raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
        return lambda function: _CheckpointedFunction(function, options)
    if isinstance(function, Module):
        # Its path is in force before it runs, so that the second run, which no module is around, has it too.
        return _plimsoll._call_module(function, _checkpoint, (function, args, kwargs), options)
    return _checkpoint(function, args, kwargs, **options)


def _checkpoint(
    function: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    *,
    use_reentrant: bool | None,
    preserve_rng_state: bool,
    context_fn: Any,
    determinism_check: str,
    debug: bool,
    early_stop: bool,
    respect_saved_tensors_hooks: bool | None,
) -> Any:
    if use_reentrant is None:
        warnings.warn(_explicit("checkpoint"), stacklevel=3)
        use_reentrant = True
    if not use_reentrant:
        debug = debug if _debug_enabled is None else _debug_enabled
        if debug and context_fn is not noop_context_fn:
            raise ValueError("debug=True is incompatible with non-default context_fn")
        if determinism_check not in ("default", "none"):
            raise ValueError(
                f"determinism_check should be one of ['default', 'none'], but got {determinism_check}"
            )
        stops = early_stop if _early_stop_enabled is None else _early_stop_enabled
        switches = (preserve_rng_state, stops, determinism_check == "default", debug)
        return _run(function, args, kwargs, context_fn, switches)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    if context_fn is not noop_context_fn or debug is not False or respect_saved_tensors_hooks is not None:
        raise ValueError(
            "Passing `context_fn`, `debug`, or `respect_saved_tensors_hooks` is only supported when use_reentrant=False."
        )
    return CheckpointFunction.apply(function, preserve_rng_state, *args)


def _explicit(name: str) -> str:
    return (
        f"{name}: the use_reentrant parameter should be passed explicitly. A later release of PyTorch raises an exception "
        "without it. use_reentrant=False is recommended; use_reentrant=True is what happens now."
    )


def _run(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    context_fn: Any,
    switches: tuple[bool, bool, bool, bool],
) -> Any:
    forward_context, recompute_context = context_fn()
    if not is_grad_enabled():
        return function(*args, **kwargs)
    # Rust keeps the tensors among the arguments; what runs later must not hold them.
    places = [index for index, arg in enumerate(args) if isinstance(arg, Tensor)]
    rest = [None if isinstance(arg, Tensor) else arg for arg in args]
    completed = False

    def forward() -> Any:
        nonlocal completed
        with forward_context:
            result = function(*args, **kwargs)
            completed = True
            return result

    def again(*tensors: Tensor) -> None:
        arguments = rest.copy()
        for index, tensor in zip(places, tensors, strict=True):
            arguments[index] = tensor
        with recompute_context:
            function(*arguments, **kwargs)

    result = _plimsoll._checkpoint(forward, again, [args[index] for index in places], switches)
    if not completed:
        raise RuntimeError(
            "the forward context provided by context_fn suppressed an exception raised during the checkpointed forward. "
            "checkpoint cannot return a value for a failed forward; let the exception pass"
        )
    return result


def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **kwargs: Any
) -> Any:
    """Runs the functions, or the modules of a `Sequential`, one after the other in `segments` parts, each checkpointed
    but the last."""
    from ..nn import Sequential

    if use_reentrant is None:
        warnings.warn(_explicit("checkpoint_sequential"), stacklevel=2)
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    functions = list(functions.children()) if isinstance(functions, Sequential) else functions

    def part(chosen: Any) -> Callable[[Any], Any]:
        return lambda value: functools.reduce(lambda value, function: function(value), chosen, value)

    size = len(functions) // segments
    end = 0
    for start in range(0, size * (segments - 1), size):
        end = start + size
        stage = part(functions[start:end])
        input = checkpoint(stage, input, use_reentrant=use_reentrant, preserve_rng_state=preserve)
    return part(functions[end:])(input)


class GraphExecGroup:
    """While in force, every backward of this thread counts as one: a checkpointed function runs again once for all of
    them. No two may need the same saved value."""

    def __enter__(self) -> GraphExecGroup:
        self._group = _plimsoll._GraphExecGroup()
        return self

    def __exit__(self, *failure: object) -> None:
        self._group.leave()


class CheckpointPolicy(enum.Enum):
    """What happens to the results of an operation in a checkpointed function. `MUST` and `PREFER` are the same here."""

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5

    def _word(self) -> str:
        return ("save", "recompute", "offload")[self.value // 2]


class SelectiveCheckpointContext:
    """What a policy gets to know beside the operation: its result."""

    def __init__(self, *, is_recompute: bool, op_output: Any = None) -> None:
        self.is_recompute, self.op_output = is_recompute, op_output


class _Selection:
    """One of the two contexts of a selective checkpoint."""

    def __init__(self, selective: Any, begin: Callable[[], None]) -> None:
        self._selective, self._begin = selective, begin

    def __enter__(self) -> None:
        self._begin()

    def __exit__(self, *failure: object) -> None:
        self._selective.leave()


def create_selective_checkpoint_contexts(
    policy_fn_or_list: Any, allow_cache_entry_mutation: bool = False
) -> tuple[AbstractContextManager[Any], AbstractContextManager[Any]]:
    """The contexts of a checkpoint that keeps the results of some operations, for its `context_fn`. The policy is called as
    `policy(ctx, op, *tensors)` with the operation's name, which `torch.ops.aten`'s are equal to (in sets too), and answers
    with a `CheckpointPolicy`, or True to save. A list of operations, as these, by name or as functions, saves theirs."""
    if isinstance(policy_fn_or_list, list):
        chosen = {name for operation in policy_fn_or_list for name in _operation_names(operation)}

        def policy_fn(ctx: Any, op: str, *args: Any) -> Any:
            return str(op) in chosen

    elif callable(policy_fn_or_list):
        policy_fn = policy_fn_or_list
    else:
        raise TypeError("policy_fn_or_list must be either a function or a list of ops.")

    def decide(name: str, inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...]) -> str:
        output = outputs[0] if len(outputs) == 1 else outputs
        policy: Any = policy_fn(SelectiveCheckpointContext(is_recompute=False, op_output=output), Operation(name), *inputs)
        if isinstance(policy, bool):
            policy = CheckpointPolicy.MUST_SAVE if policy else CheckpointPolicy.PREFER_RECOMPUTE
        # What is no policy saves nothing, as in PyTorch.
        return policy._word() if isinstance(policy, CheckpointPolicy) else "recompute"

    selective = _plimsoll._SelectiveCheckpoint(decide, allow_cache_entry_mutation)
    return _Selection(selective, selective.record), _Selection(selective, selective.replay)


def _operation_names(operation: Any) -> tuple[str, ...]:
    """The names, here, of an operation of a list: by PyTorch's name, as a function, or by name."""
    if isinstance(operation, OpOverload):
        return operation.operations
    if isinstance(operation, OpOverloadPacket):
        raise ValueError(
            f"Expected op in `op_list` to be an OpOverload but got: {operation} of type {type(operation)}. Please update the "
            f"OpOverloadPacket to a specific OpOverload. For example, if you have `torch.ops.{operation}`, change it to "
            f"`torch.ops.{operation}.default`."
        )
    name = operation if isinstance(operation, str) else getattr(operation, "__name__", None)
    if not isinstance(name, str):
        raise ValueError(
            f"Expected op in `op_list` to be an OpOverload, a function or the name of an operation but got: {operation} of type "
            f"{type(operation)}."
        )
    if not any(hasattr(place, name) for place in (_plimsoll, Tensor, functional)):
        raise ValueError(f"Expected op in `op_list` to be the name of an operation, and there is none called {name!r}")
    return (name,)


def checkpoint_region(policy: CheckpointPolicy, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Calls a part of a selectively checkpointed function under one policy, whatever operations it is made of."""
    return _plimsoll._checkpoint_region(policy._word(), lambda: function(*args, **kwargs))
