"""What modules, objects and classes have under names, read through the interpreter's own descriptors: none of the
program's code runs, and a module that is loaded lazily stays unloaded. Where the walk goes with it is `_holders.py`."""

from __future__ import annotations

import sys
import threading
import types
import weakref
from typing import Any, Iterator

from ._errors import is_an_answer
from ._places import is_user_file

_NAMES_OF_MODULE = vars(types.ModuleType)["__dict__"]
_NAMES_OF_CLASS = type.__dict__["__dict__"]
_CLASSES = type.__dict__["__mro__"]
_DISPATCHES = "__torch_dispatch__"
_FUNCTIONS = "__torch_function__"


def names_in(module: Any) -> dict[str, Any]:
    """A module's names. To ask a module for one of them that is loaded lazily would load it."""
    names = _NAMES_OF_MODULE.__get__(module) if issubclass(type(module), types.ModuleType) else None
    return names if type(names) is dict else {}


def is_programs_module(name: Any, module: Any) -> bool:
    """Whether a module is the program's own: of a file of the user's, or made by hand, which has neither file nor loader."""
    names = names_in(module)
    file = names.get("__file__")
    if type(file) is str:
        return is_user_file(file)
    # A library's own have a dot: `torch._C._nn`.
    is_made = type(module) is types.ModuleType and names.get("__spec__") is None and names.get("__loader__") is None
    return is_made and type(name) is str and "." not in name


def names_of_threads(referents: list[Any]) -> Iterator[dict[str, Any]]:
    """What each thread has in a `threading.local`, of what the collector finds in it. To ask for the running thread's would call
    a subclass's `__init__` there if it has none yet."""
    for found in referents:
        # From Python 3.13 on the keys are those objects that others had weak references to.
        if type(found) is dict and found and all(type(key) is weakref.ref or type(key).__name__ == "_localdummy" for key in found):
            yield from (names for names in list(found.values()) if type(names) is dict)


def attributes_of(value: Any) -> dict[str, Any]:
    """The same as `Attributes.of`, for a single question."""
    return Attributes().of(value)


class Attributes:
    """Reads objects of many classes. What it has learnt of those is its own until it forgets: they are the program's, and may
    hold tensors."""

    def __init__(self) -> None:
        self._dict_slots: dict[type, Any] = {}
        self._member_slots: dict[type, list[tuple[str, Any]]] = {}
        self._are_of_user: dict[type, bool] = {}
        self._are_arrays: dict[type, bool] = {}
        array = names_in(sys.modules.get("numpy")).get("ndarray")
        self._array: Any = array if type(array) is type else None

    def forget(self) -> None:
        for known in (self._dict_slots, self._member_slots, self._are_of_user, self._are_arrays):
            known.clear()

    def of(self, value: Any) -> dict[str, Any]:
        """The attributes of an object: its class may define `__dict__` otherwise."""
        kind = type(value)
        if kind is threading.local:
            # It has no descriptor; this is what the current thread has in it.
            return threading.local.__getattribute__(value, "__dict__")  # type: ignore[no-any-return]
        if kind not in self._dict_slots:
            found = next((names["__dict__"] for names in class_dicts(kind) if "__dict__" in names), None)
            self._dict_slots[kind] = found if type(found) is types.GetSetDescriptorType else None
        slot = self._dict_slots[kind]
        try:
            names = slot.__get__(value) if slot is not None else {}
        except Exception as error:
            if not is_an_answer(error):
                raise
            return {}
        return names if issubclass(type(names), dict) else {}

    def slots(self, kind: type) -> list[tuple[str, Any]]:
        """The slots of the program's own classes."""
        if kind not in self._member_slots:
            self._member_slots[kind] = [
                (name, member)
                for of in _CLASSES.__get__(kind)
                if self.is_of_user(of)
                for name, member in list(_NAMES_OF_CLASS.__get__(of).items())
                if type(member) is types.MemberDescriptorType
            ]
        return self._member_slots[kind]

    def is_of_user(self, kind: type) -> bool:
        """Whether the program has defined the class."""
        known = self._are_of_user.get(kind)
        if known is None:
            module = _NAMES_OF_CLASS.__get__(kind).get("__module__")
            is_named = type(module) is str
            known = is_named and (module == "__main__" or is_programs_module(module, sys.modules.get(module)))
            self._are_of_user[kind] = known
        return known

    def is_iterator_of_user(self, kind: type) -> bool:
        return any("__next__" in _NAMES_OF_CLASS.__get__(of) and self.is_of_user(of) for of in _CLASSES.__get__(kind))

    def is_array(self, kind: type) -> bool:
        """Whether these are arrays of NumPy."""
        known = self._are_arrays.get(kind)
        if known is None:
            known = self._are_arrays[kind] = self._array is not None and issubclass(kind, self._array)
        return known

    def base(self, array: Any) -> Any:
        """Whose memory an array has."""
        return self._array.base.__get__(array)

    def entries(self, array: Any) -> tuple[int, list[Any]]:
        """How many entries an array of objects has, and those that are something; an array of numbers has none."""
        of = self._array
        if not of.dtype.__get__(array).hasobject:
            return 0, []
        entries = of.tolist(array)
        entries = entries if of.ndim.__get__(array) else [entries]
        for _ in range(of.ndim.__get__(array) - 1):
            entries = [one for inner in entries for one in inner]
        return len(entries), [one for one in entries if one is not None]


def dispatches(kind: type) -> bool:
    """Whether a class of tensors has operators of its own: it may be asked for its sizes by them, which runs its code."""
    found = next((names[_DISPATCHES] for names in class_dicts(kind) if _DISPATCHES in names), None)
    # PyTorch's own function stands for none.
    return found is not None and type(found) is not types.BuiltinFunctionType


def is_passed_on(kind: type) -> bool:
    """Whether a class of tensors leaves functions to others: then its operators are called with functions on."""
    found = next((names[_FUNCTIONS] for names in class_dicts(kind) if _FUNCTIONS in names), None)
    # PyTorch's own function stands for it.
    return type(found) is types.BuiltinFunctionType


def class_dicts(kind: type) -> Iterator[Any]:
    for base in _CLASSES.__get__(kind):
        yield _NAMES_OF_CLASS.__get__(base)
