"""The frames of all threads, asked for so that no collection comes meanwhile. Before Python 3.12 one may come while the
interpreter makes the dictionary, under a lock that finalizers may want as well: the program would wait for itself for ever."""

from __future__ import annotations

import gc
import sys
import threading
from types import FrameType


def frames_of_threads() -> dict[int, FrameType]:
    """The frame in which each thread of Python's is; of this one the frame that asks."""
    is_collected = sys.version_info < (3, 12) and gc.isenabled()
    if is_collected:
        gc.disable()
    try:
        frames = sys._current_frames()
    finally:
        if is_collected:
            gc.enable()
    frames[threading.get_ident()] = sys._getframe(1)
    return frames
