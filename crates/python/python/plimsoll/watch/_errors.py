"""Whose are errors that are raised while the watch runs? Handlers of signals run between any two instructions of its own, and other
threads may set an error there: those are the program's, and arrive in it."""

from __future__ import annotations

import functools
import inspect
import os
import signal
import sys
from types import CodeType, FrameType, FunctionType, MethodType, TracebackType
from typing import Any

from ._places import is_package_code, is_user_code

_HERE = os.path.dirname(os.path.abspath(__file__))
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
            codes = [_code_of(signal.getsignal(number)) for number in signal.valid_signals()]
        if any(frame.f_code is one for one in codes):
            return True
        # One that is an object, or has taken itself off.
        is_not_ours = is_user_code(frame.f_code) or is_package_code(frame.f_code)
        if is_not_ours and is_given_a_frame(frame):
            return True
        traceback = traceback.tb_next
    return False


def _code_of(handler: Any) -> CodeType | None:
    """What runs as a handler of a signal, where that is a function, or one with arguments that are filled in."""
    while type(handler) in (functools.partial, MethodType):
        handler = handler.func if type(handler) is functools.partial else handler.__func__
    return handler.__code__ if type(handler) is FunctionType else None


def let_go_of_frames(error: BaseException) -> None:
    """Empties the watch's frames that an error of a handler's went through: who keeps the error keeps them, and they hold what was
    looked at."""
    traceback = error.__traceback__
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename.startswith(_HERE):
            try:
                traceback.tb_frame.clear()
            except RuntimeError:  # it still runs
                pass
        traceback = traceback.tb_next


def is_an_answer(error: BaseException) -> bool:
    """Whether it says what was asked, where only native code was asked: what a handler of a signal raises there has a frame of its
    own."""
    traceback = error.__traceback__
    return (traceback is None or traceback.tb_next is None) and not _is_foreign(error)


def is_given_a_frame(frame: FrameType) -> bool:
    """Whether a function was called as handlers of signals are."""
    code, names = frame.f_code, frame.f_locals
    count = code.co_argcount + bool(code.co_flags & inspect.CO_VARARGS)
    given = [names[name] for name in code.co_varnames[: count + code.co_kwonlyargcount] if name in names]
    given += [one for many in given if type(many) is tuple for one in many]
    return any(type(one) is FrameType for one in given)


def _is_foreign(error: BaseException) -> bool:
    module = type.__dict__["__dict__"].__get__(type(error)).get("__module__", "builtins")
    return type(module) is not str or module.partition(".")[0] not in _OWN
