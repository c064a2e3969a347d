"""Functions that all modules call when they are given a parameter, a buffer or a module: each may put another in its place."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from . import _hooks
from ._hooks import RemovableHandle

parameter_hooks: _hooks.Hooks = OrderedDict()
buffer_hooks: _hooks.Hooks = OrderedDict()
module_hooks: _hooks.Hooks = OrderedDict()


def register_module_parameter_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls `hook(module, name, parameter)` whenever a module gets a parameter; what it returns takes its place."""
    return _hooks.add(parameter_hooks, hook)


def register_module_buffer_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls `hook(module, name, buffer)` whenever a module gets a buffer; what it returns takes its place."""
    return _hooks.add(buffer_hooks, hook)


def register_module_module_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls `hook(module, name, submodule)` whenever a module gets a module; what it returns takes its place."""
    return _hooks.add(module_hooks, hook)


def registered(hooks: _hooks.Hooks, owner: Any, name: str, value: Any) -> Any:
    """What the hooks make of what `owner` is given."""
    for hook in hooks.values():
        answer = hook(owner, name, value)
        if answer is not None:
            value = answer
    return value
