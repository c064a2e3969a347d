"""Functions written in Python that PyTorch's mixed precision lists: their arguments are cast as a whole, and nothing inside."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

from ._plimsoll import _enter_listed, _leave_listed

F = TypeVar("F", bound=Callable[..., Any])


def listed_as(name: str) -> Callable[[F], F]:
    """Gives a function arguments as the list for `name` says while `autocast` is in force."""

    def around(function: F) -> F:
        @functools.wraps(function)
        def inside(*args: Any, **kwargs: Any) -> Any:
            entered = _enter_listed(name, args, kwargs)
            if entered is None:
                return function(*args, **kwargs)
            try:
                return function(*entered[0], **entered[1])
            finally:
                _leave_listed()

        return cast(F, inside)

    return around


def listed(function: F) -> F:
    """`listed_as` the function's own name."""
    return listed_as(function.__name__)(function)
