"""Hooks of optimizers' steps, put in and taken out. PyTorch goes through its one dictionary of them at the end of each step, and
fails there, in the program, if one leaves meanwhile: in another thread that goes on, or in a hook. So one that has to go while
any thread is in an optimizer stays, without effect, until the next one comes or goes. What is done at a step is `_steps.py`
and `_phases.py`."""

from __future__ import annotations

from types import FrameType
from typing import Any, Callable

from ._frames import frames_of_threads

# Hooks that have to go, and the file of the optimizers that call them.
_left: list[tuple[Callable[[], None], str]] = []


def put_in(optimizers: Any, when: str, hook: Callable[..., None]) -> Callable[[], None]:
    """Has a hook called at steps of all optimizers of a module, "pre" or "post"; gives back what takes it out."""
    _take_out()
    remove = getattr(optimizers, f"register_optimizer_step_{when}_hook")(hook).remove

    def leave() -> None:
        _left.append((remove, optimizers.__file__))
        _take_out()

    return leave


def _take_out() -> None:
    frames = frames_of_threads()
    try:
        for one in [one for one in _left if not any(_passes(frame, one[1]) for frame in frames.values())]:
            # Another thread may have come first.
            if one in _left:
                _left.remove(one)
                one[0]()
    finally:
        # This frame would hold itself, and with it all that its callers hold.
        frames.clear()


def _passes(frame: FrameType | None, file: str) -> bool:
    while frame is not None and frame.f_code.co_filename != file:
        frame = frame.f_back
    return frame is not None
