"""Which lines are the user's own: a place is the innermost of them on a stack, library frames folded. It opens no
file and keeps no frame alive; `_making.py` notes a place for every storage."""

from __future__ import annotations

import os
import site
import sys
import sysconfig
import threading
from importlib.machinery import ModuleSpec
from types import CodeType, FrameType, ModuleType
from typing import NamedTuple

from ._frames import frames_of_threads

_HERE = os.path.dirname(os.path.abspath(__file__))


def _library_folders() -> tuple[str, ...]:
    folders = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    folders.update(getattr(site, "getsitepackages", list)())
    try:
        folders.add(site.getusersitepackages())
    except Exception:  # a Python without a home folder
        pass
    if os.path.basename(os.path.dirname(_HERE)) == "plimsoll":
        # Plimsoll itself, where the folder is in it, also from a working tree.
        folders.add(os.path.dirname(_HERE))
    named = {os.path.join(os.path.abspath(folder), "") for folder in folders if folder}
    return tuple(sorted(named | {os.path.realpath(folder) + os.sep for folder in named}))


LIBRARIES = _library_folders()
# What stands for a file where there is none: Python's own modules, and code that PyTorch's compiler has written.
_WRITTEN = ("<frozen", "<eval_with_key>")
_user_files: dict[str, bool] = {}
# Where packages are installed, and what of it is the program.
_SITES = tuple(folder for folder in LIBRARIES if os.path.basename(os.path.dirname(folder)).endswith("-packages"))
_of_program: set[str] = set()
# They start programs, and are none.
_NEVER = ("torch", "plimsoll", "pytest")


def is_user_file(name: str) -> bool:
    """Whether a source file belongs to the program rather than to Python, a package or the watch."""
    known = _user_files.get(name)
    if known is None:
        is_installed = name.startswith(LIBRARIES) and not name.startswith(tuple(_of_program))
        known = _user_files[name] = not is_installed and not name.startswith((*_WRITTEN, _HERE))
    return known


def follow_program() -> None:
    """A program may be an installed package itself: what `-m` runs is the user's, with all of its package."""
    main = sys.modules.get("__main__")
    names = vars(main) if type(main) is ModuleType else {}
    spec, file = names.get("__spec__"), names.get("__file__")
    name = spec.name if type(spec) is ModuleSpec else ""
    if type(file) is not str or not file.startswith(_SITES) or name.partition(".")[0] in _NEVER:
        return
    for _ in range(name.count(".")):
        file = os.path.dirname(file)
    _of_program.add(os.path.join(file, "") if "." in name else file)
    _user_files.clear()


def is_package_code(code: CodeType) -> bool:
    """Whether it belongs to an installed package other than PyTorch and the watch's own."""
    name = code.co_filename
    return name.startswith(_SITES) and not name.startswith((_HERE, *(os.path.join(folder, "torch") + os.sep for folder in _SITES)))


def is_user_code(code: CodeType) -> bool:
    # By its file: a text knows its hash, which of a code is computed of all its instructions each time.
    known = _user_files.get(code.co_filename)
    return is_user_file(code.co_filename) if known is None else known


class Place(NamedTuple):
    """A line of the user's program. It is kept as code and instruction: line numbers cost more and few are told."""

    code: CodeType
    instruction: int
    backward: bool

    def __hash__(self) -> int:
        return hash((self.code.co_firstlineno, self.instruction, self.backward))

    @property
    def line(self) -> int:
        at = (line for start, end, line in self.code.co_lines() if start <= self.instruction < end and line)
        return next(at, self.code.co_firstlineno)

    @property
    def file(self) -> str:
        return self.code.co_filename

    @property
    def function(self) -> str:
        return self.code.co_name

    def __str__(self) -> str:
        return name_of(self.file, self.line)


def name_of(file: str, line: int) -> str:
    """`train.py:17`, with the folder where the name alone says nothing."""
    name = os.path.basename(file)
    if name in ("__init__.py", "__main__.py"):
        name = os.path.join(os.path.basename(os.path.dirname(file)), name)
    return f"{name}:{line}"


def place_of(frame: FrameType | None) -> Place | None:
    """The innermost user line from `frame` outwards, and whether backward runs below it."""
    backward = False
    while frame is not None and not is_user_code(frame.f_code):
        backward = backward or frame.f_code.co_name == "_engine_run_backward"
        frame = frame.f_back
    if frame is not None:
        return Place(frame.f_code, frame.f_lasti, backward)
    main = threading.main_thread().ident
    if threading.get_ident() == main:
        return None
    # Backward's own threads have no Python frames: the line is the one on which the main thread waits.
    waiting = None if main is None else frames_of_threads().get(main)
    found = place_of_waiting(waiting)
    return found and found._replace(backward=True)


def place_of_waiting(frame: FrameType | None) -> Place | None:
    while frame is not None and not is_user_code(frame.f_code):
        frame = frame.f_back
    return Place(frame.f_code, frame.f_lasti, False) if frame is not None else None
