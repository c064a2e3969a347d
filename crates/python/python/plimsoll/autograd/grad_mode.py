"""Switches of autograd for the calling thread: recording (`no_grad` and its kin, from `_modes.py`), threads of backward, and how
views come back after a write."""

from __future__ import annotations

import functools
import threading
from typing import Any, cast

from .._modes import _Function
from .._modes import enable_grad as enable_grad
from .._modes import inference_mode as inference_mode
from .._modes import no_grad as no_grad
from .._modes import set_grad_enabled as set_grad_enabled

__all__ = ["enable_grad", "inference_mode", "no_grad", "set_grad_enabled", "set_multithreading_enabled"]

_settings = threading.local()


class _Setting:
    """A switch of the calling thread: set when the object is made, set back when a `with` over it ends; around a function, for each
    of its calls."""

    _name: str
    _default: bool

    def __init__(self, mode: bool) -> None:
        self.mode = bool(mode)
        self.prev = self._value()
        self._set(self.mode)

    @classmethod
    def _value(cls) -> bool:
        return getattr(_settings, cls._name, cls._default)

    @classmethod
    def _set(cls, value: bool) -> None:
        setattr(_settings, cls._name, value)

    def __enter__(self) -> None:
        self._set(self.mode)

    def __exit__(self, *failure: object) -> None:
        self._set(self.prev)

    def __call__(self, function: _Function) -> _Function:
        self._set(self.prev)

        @functools.wraps(function)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with type(self)(self.mode):
                return function(*args, **kwargs)

        return cast(_Function, inside)


class set_multithreading_enabled(_Setting):
    """Whether backward may use threads of its own. Here it runs in the thread that asks for it either way, and the switch only
    answers `is_multithreading_enabled`."""

    _name, _default = "multithreading", True


class _force_original_view_tracking(_Setting):
    """Whether a view that was written through its base is computed again by the operations that made it. That is always so here,
    and gradients do not depend on it: the switch only answers `is_view_replay_enabled`."""

    _name, _default = "view_replay", False

    def clone(self) -> _force_original_view_tracking:
        return type(self)(self.mode)


def is_multithreading_enabled() -> bool:
    """What `set_multithreading_enabled` set in this thread."""
    return set_multithreading_enabled._value()


def is_view_replay_enabled() -> bool:
    """What was asked for in this thread about views."""
    return _force_original_view_tracking._value()
