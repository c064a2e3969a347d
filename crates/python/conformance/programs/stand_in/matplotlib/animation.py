"""Draws nothing."""

from __future__ import annotations

from nothing import NOTHING, Nothing


def __getattr__(name: str) -> Nothing:
    if name.startswith("__"):
        raise AttributeError(name)
    return NOTHING
