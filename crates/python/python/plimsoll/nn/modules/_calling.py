"""The call of a module: `forward`, with the hooks before and after it."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from ..._compile import compile, say_once
from ..._plimsoll import Tensor, _call_module
from . import _hooks
from ._hooks import BackwardHooks, RemovableHandle
from ._last_node import hook_last_node

# Hooks of all modules.
_global_forward_pre_hooks: _hooks.Hooks = OrderedDict()
_global_forward_hooks: _hooks.Hooks = OrderedDict()
_global_forward_hooks_always_called: dict[int, bool] = OrderedDict()
_global_forward_hooks_with_kwargs: dict[int, bool] = OrderedDict()
_global_backward_hooks: _hooks.Hooks = OrderedDict()
_global_backward_pre_hooks: _hooks.Hooks = OrderedDict()
# Whether those of all modules see whole modules; the first one decides.
_global_is_full_backward_hook: bool | None = None


class _Call:
    """How far a call with hooks has come."""

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.args, self.kwargs = args, kwargs
        self.result: Any = None
        self.called: set[int] = set()

    def after(self, given: Any) -> None:
        """What a hook returns takes the result's place."""
        if given is not None:
            self.result = given


class Calling:
    """A module as a function, and the hooks that see its calls."""

    forward: Callable[..., Any]
    _forward_hooks: _hooks.Hooks
    _forward_pre_hooks: _hooks.Hooks
    _backward_hooks: _hooks.Hooks
    _backward_pre_hooks: _hooks.Hooks
    _forward_hooks_with_kwargs: dict[int, bool]
    _forward_hooks_always_called: dict[int, bool]
    _forward_pre_hooks_with_kwargs: dict[int, bool]
    _is_full_backward_hook: bool | None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        own = self.__dict__
        if not (
            own["_forward_hooks"] or own["_forward_pre_hooks"] or own["_backward_hooks"] or own["_backward_pre_hooks"]
            or _global_forward_hooks or _global_forward_pre_hooks or _global_backward_hooks or _global_backward_pre_hooks
        ):  # fmt: skip
            return _call_module(self, self.forward, args, kwargs)
        return _call_module(self, self._call_with_hooks, (args, kwargs), {})

    def _call_with_hooks(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        going = _Call(args, kwargs)
        try:
            return self._hooked(going)
        except Exception:
            for key, hook in [*_global_forward_hooks.items(), *self._forward_hooks.items()]:
                always = key in self._forward_hooks_always_called or key in _global_forward_hooks_always_called
                if not always or key in going.called:
                    continue
                try:
                    going.after(self._call_forward_hook(key, hook, going.args, going.kwargs, going.result))
                except Exception as failure:
                    warnings.warn(
                        "module forward hook with ``always_call=True`` raised an exception that was silenced as another "
                        f"error was raised in forward: {failure}",
                        stacklevel=2,
                    )
            raise

    def compile(self, *args: Any, disable: bool = False, **options: Any) -> None:
        """Leaves the module as it is, and says once that nothing is compiled here."""
        if not disable:
            say_once(stacklevel=3)
        compile(self, *args, disable=True, **options)

    def _hooked(self, going: _Call) -> Any:
        args, kwargs = going.args, going.kwargs
        for key, hook in [*_global_forward_pre_hooks.items(), *self._forward_pre_hooks.items()]:
            if key in self._forward_pre_hooks_with_kwargs:
                given = hook(self, args, kwargs)
                if given is not None:
                    if not (isinstance(given, tuple) and len(given) == 2):
                        raise RuntimeError(
                            f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got {given}."
                        )
                    args, kwargs = given
            else:
                given = hook(self, args)
                if given is not None:
                    args = given if isinstance(given, tuple) else (given,)
            going.args, going.kwargs = args, kwargs
        after, older = self._get_backward_hooks()
        before = [*_global_backward_pre_hooks.values(), *self._backward_pre_hooks.values()]
        backward = BackwardHooks(self, after, before) if after or before else None
        if backward is not None:
            args = going.args = backward.arguments_through(args)
        going.result = self.forward(*args, **kwargs)
        for key, hook in [*_global_forward_hooks.items(), *self._forward_hooks.items()]:
            going.called.add(key)
            going.after(self._call_forward_hook(key, hook, args, kwargs, going.result))
        result = going.result
        if backward is not None:
            if not isinstance(result, (Tensor, tuple)):
                warnings.warn(
                    "For backward hooks to be called, module output should be a Tensor or a tuple of Tensors but received "
                    f"{type(result)}",
                    stacklevel=4,
                )
            result = backward.results_through(result)
        if older:
            hook_last_node(self, older, args, result)
        return result

    def _get_backward_hooks(self) -> tuple[list[Any], list[Any]]:
        """Those of the whole module, and those of its last operation; hooks of all modules come first."""
        kinds: tuple[list[Any], list[Any]] = ([], [])
        for is_full, hooks in (
            (_global_is_full_backward_hook, _global_backward_hooks),
            (self._is_full_backward_hook, self._backward_hooks),
        ):
            kinds[0 if is_full else 1].extend(hooks.values())
        return kinds

    def _call_forward_hook(
        self, key: int, hook: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], result: Any
    ) -> Any:
        if key in self._forward_hooks_with_kwargs or key in _global_forward_hooks_with_kwargs:
            return hook(self, args, kwargs, result)
        return hook(self, args, result)

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Calls `hook(module, args)` before `forward`; what it returns takes the arguments' place."""
        handle = _hooks.add(
            self._forward_pre_hooks, hook, prepend=prepend, extra=self._forward_pre_hooks_with_kwargs
        )
        if with_kwargs:
            self._forward_pre_hooks_with_kwargs[handle.id] = True
        return handle

    def register_forward_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> RemovableHandle:
        """Calls `hook(module, args, output)` after `forward`; what it returns takes the output's place. With
        `always_call` also if `forward` fails."""
        extra = [self._forward_hooks_with_kwargs, self._forward_hooks_always_called]
        handle = _hooks.add(self._forward_hooks, hook, prepend=prepend, extra=extra)
        if with_kwargs:
            self._forward_hooks_with_kwargs[handle.id] = True
        if always_call:
            self._forward_hooks_always_called[handle.id] = True
        return handle

    def register_full_backward_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Calls `hook(module, grad_output)` before gradients go through the module."""
        return _hooks.add(self._backward_pre_hooks, hook, prepend=prepend)

    def register_full_backward_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Calls `hook(module, grad_input, grad_output)` when the gradients of the arguments are there."""
        self._be_full(True)
        return _hooks.add(self._backward_hooks, hook, prepend=prepend)

    def register_backward_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls `hook(module, grad_input, grad_output)` with the gradients of the last operation of the module's call. What is
        wanted is mostly `register_full_backward_hook`."""
        self._be_full(False)
        return _hooks.add(self._backward_hooks, hook)

    def _be_full(self, full: bool) -> None:
        if self._is_full_backward_hook is (not full):
            raise RuntimeError(
                "Cannot use both regular backward hooks and full backward hooks on a single Module. Please use only one of them."
            )
        self._is_full_backward_hook = full


def register_module_forward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """A forward pre-hook of all modules."""
    return _hooks.add(_global_forward_pre_hooks, hook)


def register_module_forward_hook(
    hook: Callable[..., Any], *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """A forward hook of all modules; with `always_call` also where `forward` fails."""
    extra = [_global_forward_hooks_always_called, _global_forward_hooks_with_kwargs]
    handle = _hooks.add(_global_forward_hooks, hook, extra=extra)
    if with_kwargs:
        _global_forward_hooks_with_kwargs[handle.id] = True
    if always_call:
        _global_forward_hooks_always_called[handle.id] = True
    return handle


def register_module_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """A `register_backward_hook` of all modules."""
    return _add_backward_hook(hook, False)


def register_module_full_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """A backward hook of all modules."""
    return _add_backward_hook(hook, True)


def _add_backward_hook(hook: Callable[..., Any], full: bool) -> RemovableHandle:
    global _global_is_full_backward_hook
    if _global_is_full_backward_hook is (not full):
        raise RuntimeError(
            "Cannot use both regular backward hooks and full backward hooks as a global Module hook. Please use only one of them."
        )
    _global_is_full_backward_hook = full
    return _hooks.add(_global_backward_hooks, hook)


def register_module_full_backward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """A backward pre-hook of all modules."""
    return _hooks.add(_global_backward_pre_hooks, hook)
