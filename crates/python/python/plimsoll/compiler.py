"""What programs ask of the compiler, which is not here: whether it runs, and that it leaves something alone."""

from __future__ import annotations

from typing import Any

from ._compile import compile as compile

__all__ = ["compile", "disable", "is_compiling", "is_dynamo_compiling", "is_exporting", "reset"]


def is_compiling() -> bool:
    """Whether this code is being compiled: never."""
    return False


def is_dynamo_compiling() -> bool:
    """Whether this code is being compiled: never."""
    return False


def is_exporting() -> bool:
    """Whether this code is being exported: never."""
    return False


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """Leaves a function alone, as everything is; also a decorator with options."""
    return fn if fn is not None else lambda function: function


def reset() -> None:
    """Forgets what was compiled: nothing was."""
