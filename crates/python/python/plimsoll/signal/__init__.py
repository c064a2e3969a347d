"""Signals: so far the windows that they are cut out with."""

from . import windows as windows

__all__ = ["windows"]
