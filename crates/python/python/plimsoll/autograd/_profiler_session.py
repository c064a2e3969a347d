"""Who records: one profiler at a time in a process. A second one that starts cancels the first, which has no events
then, as in PyTorch; here a warning says so."""

from __future__ import annotations

import sys
import warnings
import weakref
from pathlib import Path
from typing import Any

from .. import _plimsoll

#: The profiler that records: its address, which it has until its `__del__` is over, and a reference that keeps nothing
#: alive. In a circle that the collector frees, the reference is gone before `__del__` runs.
_owner: tuple[int, weakref.ref[Any]] | None = None


def owner() -> Any:
    """The profiler that records, if one does."""
    return None if _owner is None else _owner[1]()


def begin(profiler: Any, shapes: bool, memory: bool, stacks: bool, flops: bool, modules: bool) -> None:
    """The profiler records from now on, and another one that did no more."""
    global _owner
    if owner() is not None and owner() is not profiler:
        said = "a profiler is running already: it is cancelled, and has no events, because another one starts"
        warnings.warn(said, stacklevel=_level_of_the_program())
        _plimsoll._profiler_stop()
        _owner = None
    _plimsoll._profiler_start(shapes, memory, stacks, flops, modules)
    _owner = (id(profiler), weakref.ref(profiler))


def _level_of_the_program() -> int:
    """How far above its caller the first frame is that is not the package's."""
    package = str(Path(__file__).parents[1])
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(package):
        level, frame = level + 1, frame.f_back
    return level


def end(profiler: Any) -> Any:
    """What the profiler recorded; nothing if it was cancelled, or never began."""
    global _owner
    if _owner is None or _owner[0] != id(profiler):
        return None
    _owner = None
    return _plimsoll._profiler_stop()
