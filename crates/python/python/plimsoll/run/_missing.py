"""What is not there: the error that PyTorch users expect (`AttributeError`, `ModuleNotFoundError`, so `hasattr` and
`try: import` work), with the program's line and the nearest thing that exists. Texts are made when they are read, as
most of these errors are only asked for with `hasattr`."""

from __future__ import annotations

import difflib
import os
import sys
import types
from typing import Any

from ._instead import INSTEAD

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# How alike two names must be to be called near.
_NEAR = 0.75
# Where a name may be found that is not where it was looked for.
_ELSEWHERE = ("torch", "torch.nn.functional", "torch.linalg", "torch.special", "torch.Tensor", "torch.nn", "torch.cuda")


class MissingAttribute(AttributeError):
    """A name that PyTorch's module may have and Plimsoll's has not."""

    def __init__(self, module: str, name: str):
        super().__init__(f"module {module!r} has no attribute {name!r}")
        self._of, self._what, self._place = module, name, place_of_program()

    def __str__(self) -> str:
        return f"{self.args[0]}: {not_there(f'{self._of}.{self._what}', self._place)}"


class MissingModule(ModuleNotFoundError):
    """A module below `torch` that Plimsoll does not have."""

    def __init__(self, name: str):
        super().__init__(f"No module named {name!r}", name=name)
        self._what, self._place = name, place_of_program()

    def __str__(self) -> str:
        return f"{self.args[0]}: {not_there(self._what, self._place)}"


class MissingImport(ImportError):
    """A name that `from torch… import` asks for and Plimsoll does not have."""

    def __init__(self, name: str):
        module, _, last = name.rpartition(".")
        super().__init__(f"cannot import name {last!r} from {module!r}", name=module)
        self._what, self._place = name, place_of_program()

    def __str__(self) -> str:
        return f"{self.args[0]}: {not_there(self._what, self._place)}"


def _print_as(error: type[BaseException], known: type[BaseException]) -> None:
    """Tracebacks call the error by the name that everybody knows."""
    error.__name__ = error.__qualname__ = known.__name__
    error.__module__ = "builtins"


_print_as(MissingAttribute, AttributeError)
_print_as(MissingModule, ModuleNotFoundError)
_print_as(MissingImport, ImportError)


def missing_attribute(module: str, name: str) -> AttributeError:
    """The error for `module.name`; Python itself asks for names in double underscores, which need no words."""
    if name.startswith("__"):
        return AttributeError(f"module {module!r} has no attribute {name!r}")
    return MissingAttribute(module, name)


def explain(error: BaseException) -> None:
    """Adds to the error that ended a program what Python could not say: that the name is one which Plimsoll does not
    have. Done at the end only, as it takes a look at all names."""
    name = None
    if type(error) is ImportError and (error.name or "").startswith("plimsoll"):
        asked = getattr(error, "name_from", None) or str(error).partition("cannot import name '")[2].partition("'")[0]
        name = f"{error.name}.{asked}".replace("plimsoll", "torch", 1) if asked else None
    elif type(error) is ModuleNotFoundError and (error.name or "").startswith("torch."):
        # Below a module that is a folder in PyTorch and a file here Python looks for nothing.
        name = error.name
    elif type(error) is AttributeError and isinstance(error.obj, _object("torch.Tensor")):
        name = f"torch.Tensor.{error.name}"
    if name is not None and hasattr(error, "add_note"):
        error.add_note(f"Plimsoll does not have {name}; {nearest(name)}")


def not_there(name: str, place: str) -> str:
    """What is missing, where it was asked for, and what there is instead."""
    said = f"Plimsoll does not have {name}"
    if place:
        said += f" (asked for at {place})"
    return f"{said}; {nearest(name)}"


def nearest(name: str) -> str:
    """The nearest thing that exists: by hand where somebody thought about it, otherwise by the name."""
    asked = name
    while asked != "torch" and "." in asked:
        if asked in INSTEAD:
            return INSTEAD[asked]
        asked = asked.rpartition(".")[0]
    module, _, last = name.rpartition(".")
    for place in (module, *_ELSEWHERE):
        if place != module and hasattr(_object(place), last):
            return f"there is {place}.{last}"
    for place in (module, *_ELSEWHERE):
        near = difflib.get_close_matches(last, _public(place), n=1, cutoff=_NEAR)
        if near:
            return f"the nearest name is {place}.{near[0]}"
    return "nothing near it exists"


def _object(dotted: str) -> Any:
    """A module, or the class of tensors, by its PyTorch name; nothing is imported for it."""
    if dotted == "torch.Tensor":
        return getattr(sys.modules["plimsoll"], "Tensor", None)
    return sys.modules.get(dotted.replace("torch", "plimsoll", 1))


def _public(dotted: str) -> list[str]:
    return [name for name in dir(_object(dotted)) if not name.startswith("_")]


def _frames() -> Any:
    frame: types.FrameType | None = sys._getframe(2)
    while frame is not None:
        yield frame
        frame = frame.f_back


def _is_of_program(file: str) -> bool:
    return not file.startswith((_PACKAGE, "<frozen ")) and not file.endswith(("importlib/__init__.py", "/runpy.py"))


def place_of_program() -> str:
    """File and line of the innermost frame that is neither ours nor Python's import."""
    for frame in _frames():
        if _is_of_program(frame.f_code.co_filename):
            return f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"
    return ""


def line_of(error: BaseException) -> str:
    """File and line of the program at which an error came up."""
    traceback, found = error.__traceback__, ""
    while traceback is not None:
        if _is_of_program(traceback.tb_frame.f_code.co_filename):
            found = f"{os.path.basename(traceback.tb_frame.f_code.co_filename)}:{traceback.tb_lineno}"
        traceback = traceback.tb_next
    return found


def raise_missing(name: str) -> None:
    """Raises the error for what an import statement asks for; does nothing for somebody who only looks
    (`importlib.util.find_spec`)."""
    steps = {frame.f_code.co_name for frame in _importing()}
    if "_handle_fromlist" in steps:
        raise MissingImport(name)
    if "_find_and_load_unlocked" in steps:
        raise MissingModule(name)


def _importing() -> Any:
    """The frames of Python's import that led here, up to whoever imports."""
    is_inside = False
    for frame in _frames():
        is_import = frame.f_code.co_filename.startswith("<frozen importlib")
        if is_inside and not is_import:
            return
        if is_import:
            is_inside = True
            yield frame
