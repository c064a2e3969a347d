"""Whose are errors that are raised while the watch runs? Handlers of signals run between any two instructions of its own, and other
threads may set an error there: those are the program's, and arrive in it."""

from __future__ import annotations

import inspect
import signal
import sys
from types import FrameType, TracebackType

from ._places import is_user_code

# Whose errors code of the watch's can meet by itself.
_OWN = sys.stdlib_module_names | {"torch", "numpy", "plimsoll", __name__.partition(".")[0]}


def is_programs_own(error: BaseException) -> bool:
    """Whether an error that was raised while the watch ran comes of the program's handler of a signal, which ran meanwhile, or is
    of a class that is the program's or another package's: then another thread has set it. Other code of the program's is not to
    run here: what that raises is an error of the watch's."""
    if _is_foreign(error):
        return True
    traceback: TracebackType | None = error.__traceback__
    codes = None
    while traceback is not None:
        frame = traceback.tb_frame
        if codes is None:
            handlers = (signal.getsignal(number) for number in signal.valid_signals())
            codes = [getattr(getattr(one, "__func__", one), "__code__", None) for one in handlers if callable(one)]
        if any(frame.f_code is one for one in codes) or (is_user_code(frame.f_code) and is_given_a_frame(frame)):
            return True
        traceback = traceback.tb_next
    return False


def is_an_answer(error: BaseException) -> bool:
    """Whether it says what was asked, where only native code was asked: what a handler of a signal raises there has a frame of its
    own."""
    traceback = error.__traceback__
    return (traceback is None or traceback.tb_next is None) and not _is_foreign(error)


def is_given_a_frame(frame: FrameType) -> bool:
    """Whether a function was called as handlers of signals are: it may be an object's, or have taken itself off."""
    code, names = frame.f_code, frame.f_locals
    count = code.co_argcount + bool(code.co_flags & inspect.CO_VARARGS)
    given = [names[name] for name in code.co_varnames[: count + code.co_kwonlyargcount] if name in names]
    given += [one for many in given if type(many) is tuple for one in many]
    return any(type(one) is FrameType for one in given)


def _is_foreign(error: BaseException) -> bool:
    module = type.__dict__["__dict__"].__get__(type(error)).get("__module__", "builtins")
    return type(module) is not str or module.partition(".")[0] not in _OWN
