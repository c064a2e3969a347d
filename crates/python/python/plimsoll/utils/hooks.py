"""Handles of hooks, where programs import them from."""

from __future__ import annotations

from typing import Any

from .._plimsoll import RemovableHandle as RemovableHandle

__all__ = ["RemovableHandle", "unserializable_hook"]


def unserializable_hook(f: Any) -> Any:
    """Marks a hook that a tensor may not be pickled with."""
    f.__torch_unserializable__ = True
    return f
