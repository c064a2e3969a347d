"""Calls of the program's that pass through the watch: of backward, of modules, of batches. Whoever warns within one counts frames
up to the line that it warns of (`warnings.warn(stacklevel=...)`), and must not count the watch's. Those of the interpreter's
import are passed by in that count, and known by the name of their file."""

from __future__ import annotations

from typing import Any

# `warnings` and `logging` look for "importlib" and "_bootstrap" in it, the compiler for "<frozen".
FILE = "<frozen importlib._bootstrap> of plimsoll.watch"


def pass_by(function: Any) -> None:
    """Has the frames of a function counted by nobody. To be called before its code is told to anybody else."""
    function.__code__ = function.__code__.replace(co_filename=FILE)
