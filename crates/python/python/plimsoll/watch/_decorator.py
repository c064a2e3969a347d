"""A context manager as a decorator of any function: of a generator or coroutine it holds until that has ended, not only
while it is being made."""

from __future__ import annotations

import contextlib
import functools
import inspect
from typing import Any, Callable, TypeVar, cast

_Function = TypeVar("_Function", bound=Callable[..., Any])


class Decorator(contextlib.ContextDecorator):
    """What `with` does for a block, for each call of a function."""

    def __enter__(self) -> Any:
        raise NotImplementedError

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> Any:
        raise NotImplementedError

    def __call__(self, function: _Function) -> _Function:
        if inspect.isgeneratorfunction(function):

            @functools.wraps(function)
            def generated(*arguments: Any, **named: Any) -> Any:
                with self:
                    return (yield from function(*arguments, **named))

            return cast(_Function, generated)
        if inspect.isasyncgenfunction(function):
            # There is no `yield from` for these; what is sent to them would be lost.
            raise TypeError(f"{type(self).__name__}: {function.__qualname__} is an asynchronous generator; use `with` inside it")
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def awaited(*arguments: Any, **named: Any) -> Any:
                with self:
                    return await function(*arguments, **named)

            return cast(_Function, awaited)
        return super().__call__(function)
