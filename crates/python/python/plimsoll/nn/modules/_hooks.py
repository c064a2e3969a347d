"""Functions that a module calls around its work: lists of them, handles that take one off, and the functions that see
gradients pass through a module.
"""

from __future__ import annotations

import warnings
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Any

from ..._plimsoll import Tensor, is_grad_enabled, zeros
from ...autograd.function import Function
from ...utils.hooks import RemovableHandle as RemovableHandle

Hooks = OrderedDict[int, Callable[..., Any]]


def add(hooks: Hooks, hook: Callable[..., Any], *, prepend: bool = False, extra: Any = None) -> RemovableHandle:
    """Puts a hook into a list, last or first."""
    handle = RemovableHandle(hooks, extra_dict=extra)
    hooks[handle.id] = hook
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


class WithModule:
    """A hook that is called with its module first, and does not keep it alive."""

    def __init__(self, hook: Callable[..., Any], module: Any) -> None:
        self.hook = hook
        self.module = weakref.ref(module)

    def __call__(self, *args: Any) -> Any:
        module = self.module()
        if module is None:
            raise RuntimeError("You are trying to call the hook of a dead Module!")
        return self.hook(module, *args)

    def __getstate__(self) -> dict[str, Any]:
        return {"hook": self.hook, "module": self.module()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        if state["module"] is None:
            raise RuntimeError("You are trying to revive the hook of a dead Module!")
        self.__init__(state["hook"], state["module"])  # type: ignore[misc]


class BackwardHookFunction(Function):
    """Gives its arguments on; gradients that come back are seen by a function."""

    @staticmethod
    def forward(ctx: Any, seen: Callable[..., Any], *tensors: Tensor) -> Any:
        ctx.set_materialize_grads(False)
        ctx.seen = seen
        # As they are: to write one in place would lose what is between it and the hooks, and is refused.
        return tensors

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> Any:
        return (None, *ctx.seen(grads))


def _tensors_of(values: tuple[Any, ...]) -> list[int]:
    return [at for at, value in enumerate(values) if isinstance(value, Tensor) and value.requires_grad]


class BackwardHooks:
    """One call of a module whose gradients somebody looks at. Its arguments and its results go through functions whose
    backward calls the hooks: results' gradients come first, arguments' last."""

    def __init__(self, module: Any, hooks: Iterable[Any], before: Iterable[Any]) -> None:
        self.module = module
        self.hooks = list(hooks)
        self.before = list(before)
        self.of_outputs: tuple[Any, ...] | None = None
        self.arguments = 0

    def _through(self, values: tuple[Any, ...], seen: Callable[..., Any]) -> tuple[Any, ...]:
        places = _tensors_of(values)
        if not is_grad_enabled() or not places:
            return values
        passed = BackwardHookFunction.apply(seen, *(values[at] for at in places))
        result = list(values)
        for at, tensor in zip(places, passed if isinstance(passed, tuple) else (passed,)):
            result[at] = tensor
        return tuple(result) if type(values) is tuple else type(values)(*result)

    def _spread(self, count: int, places: list[int], grads: tuple[Any, ...]) -> tuple[Any, ...]:
        spread: list[Any] = [None] * count
        for at, grad in zip(places, grads):
            spread[at] = grad
        return tuple(spread)

    def _replaced(self, what: str, grads: tuple[Any, ...], given: Any) -> tuple[Any, ...]:
        if given is None:
            return grads
        replaced: tuple[Any, ...] = given if isinstance(given, tuple) else (given,)
        if len(replaced) != len(grads):
            raise RuntimeError(
                f"a backward hook of {type(self.module).__name__} returned {len(replaced)} {what} gradients for {len(grads)}"
            )
        return replaced

    def arguments_through(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments, whose gradients end the backward pass of the module."""
        places = _tensors_of(args)
        self.arguments = count = len(args)
        # Not the tensors themselves: those that need no gradient would live as long as the graph.
        like = {at: (arg.shape, arg.dtype, arg.device) for at, arg in enumerate(args) if isinstance(arg, Tensor)}

        def zero(at: int) -> Tensor:
            shape, dtype, device = like[at]
            return zeros(shape, dtype=dtype, device=device)

        def seen(grads: tuple[Any, ...]) -> tuple[Any, ...]:
            # Zeros where nothing came back, as PyTorch gives them.
            grads = tuple(zero(at) if grad is None else grad for at, grad in zip(places, grads))
            if self.of_outputs is None:
                # They did not come through the module's results: a second derivative, or results in a dictionary.
                return grads
            if not self.hooks:
                self.of_outputs = None
                return grads
            spread = self._spread(count, places, grads)
            # Also for tensors that need no gradient, of whatever dtype: hooks find one for each tensor.
            spread = tuple(zero(at) if grad is None and at in like else grad for at, grad in enumerate(spread))
            for hook in self.hooks:
                spread = self._replaced("input", spread, hook(self.module, spread, self.of_outputs))
            self.of_outputs = None
            return tuple(spread[at] for at in places)

        # Without any, there is nothing for gradients to arrive at: the hooks are called with the results'.
        self.has_arguments = bool(places) and is_grad_enabled()
        return self._through(args, seen)

    def results_through(self, result: Any) -> Any:
        """The results, whose gradients begin the backward pass of the module."""
        is_one = not isinstance(result, tuple)
        values = (result,) if is_one else result
        places = _tensors_of(values)

        def seen(grads: tuple[Any, ...]) -> tuple[Any, ...]:
            spread = self._spread(len(values), places, grads)
            for hook in self.before:
                spread = self._replaced("output", spread, hook(self.module, spread))
            self.of_outputs = spread
            if not self.has_arguments:
                if self.hooks:
                    warnings.warn(
                        "Full backward hook is firing when gradients are computed with respect to module outputs since no "
                        "inputs require gradients.",
                        stacklevel=3,
                    )
                nothing = (None,) * self.arguments
                for hook in self.hooks:
                    given = hook(self.module, nothing, spread)
                    if given is not None and any(grad is not None for grad in (given if isinstance(given, tuple) else (given,))):
                        raise RuntimeError(
                            "a backward hook returned gradients, but no argument of the module requires them"
                        )
                self.of_outputs = None
            return tuple(spread[at] for at in places)

        through = self._through(values, seen)
        return through[0] if is_one else through
