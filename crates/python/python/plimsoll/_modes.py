"""Context managers and decorators that turn recording off and on, for the calling thread."""

from __future__ import annotations

import functools
import threading
import warnings
from collections.abc import Callable
from typing import Any, TypeVar, cast

from ._plimsoll import _Mode, _set_grad_enabled, is_grad_enabled

#: What a decorator gives back has the type of what it was given.
_Function = TypeVar("_Function", bound=Callable[..., Any])


class _ModeContext:
    """Enters the mode that its class is named after; may be entered again while it is in force, and by several threads."""

    def __new__(cls, function: Any = None, *args: Any, **options: Any) -> Any:
        made = super().__new__(cls)
        if callable(function):
            # `@no_grad` without parentheses.
            made.__init__()  # type: ignore[misc]
            return made(function)
        return made

    def __init__(self) -> None:
        self._entered = threading.local()

    def _name(self) -> str:
        return type(self).__name__

    def __enter__(self) -> None:
        self._entered.__dict__.setdefault("stack", []).append(_Mode(self._name()))

    def __exit__(self, *failure: object) -> None:
        self._entered.stack.pop().leave()

    def __call__(self, function: _Function) -> _Function:
        import inspect  # which takes longer to load than all of this file

        if inspect.isclass(function):
            what = "Decorating classes is deprecated: only making an object is in the mode, not its methods; decorate functions"
            warnings.warn(what, FutureWarning, stacklevel=2)
        if inspect.isgeneratorfunction(function):
            return cast(_Function, self._around_generator(function))

        @functools.wraps(function)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return cast(_Function, inside)

    def _around_generator(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The body of a generator runs in the mode, and what its caller does between two values does not."""

        @functools.wraps(function)
        def inside(*args: Any, **kwargs: Any) -> Any:
            generator = function(*args, **kwargs)
            step, answer = generator.send, None
            while True:
                try:
                    with self:
                        value = step(answer)
                except StopIteration as end:
                    return end.value
                try:
                    step, answer = generator.send, (yield value)
                except GeneratorExit:
                    with self:
                        generator.close()
                    raise
                except BaseException as error:
                    step, answer = generator.throw, error

        return inside


class no_grad(_ModeContext):
    """Operations are not recorded."""


class enable_grad(_ModeContext):
    """Operations are recorded again, inside a `no_grad`."""


class inference_mode(_ModeContext):
    """Operations are not recorded, and new tensors can never enter a graph. With `mode=False` it ends the mode around it
    for a while, and operations are recorded."""

    def __new__(cls, mode: Any = True) -> Any:
        return super().__new__(cls, mode)

    def __init__(self, mode: bool = True) -> None:
        super().__init__()
        self.mode = mode

    def _name(self) -> str:
        return "inference_mode" if self.mode else "no_inference_mode"


class set_grad_enabled(_ModeContext):
    """Has operations recorded, or not, from now on; as a context manager, until its end; as a decorator, inside the
    function alone."""

    def __new__(cls, mode: bool) -> Any:
        return object.__new__(cls)

    def __init__(self, mode: bool) -> None:
        self.prev, self.mode = is_grad_enabled(), mode
        _set_grad_enabled(mode)

    def __call__(self, function: _Function) -> _Function:
        _set_grad_enabled(self.prev)
        return super().__call__(function)

    def __enter__(self) -> None:
        _set_grad_enabled(self.mode)

    def __exit__(self, *failure: object) -> None:
        _set_grad_enabled(self.prev)

    def clone(self) -> set_grad_enabled:
        """Another one for the same mode."""
        return type(self)(self.mode)
