"""Saving and loading PyTorch's `.pt` files, without running anything of them."""

from __future__ import annotations

import os
import pickle
import warnings
from collections.abc import Callable
from typing import IO, Any

from . import _plimsoll

_Path = str | os.PathLike[str]

#: How a zip archive begins, and how a file of PyTorch's legacy format.
_ARCHIVE = b"PK\x03\x04"
_LEGACY = b"\x80\x02\x8a\x0a"


def save(
    obj: object,
    f: _Path | IO[bytes],
    pickle_module: Any = pickle,
    pickle_protocol: int = 2,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
) -> None:
    """Saves tensors, parameters, containers, numbers and texts to a file that `torch.load` reads, with `weights_only`
    as well. Tensors that share memory are written once and share it when they are loaded.

    A path is written under another name, brought to disk and renamed: after a crash or on a full disk the old file is
    whole. The pickle is always of protocol 2.

    >>> import io, plimsoll
    >>> file = io.BytesIO()
    >>> plimsoll.save({"step": 3}, file)
    >>> plimsoll.load(io.BytesIO(file.getvalue()))
    {'step': 3}
    """
    if pickle_protocol > pickle.HIGHEST_PROTOCOL:
        raise ValueError(f"pickle protocol must be <= {pickle.HIGHEST_PROTOCOL}")
    if not _use_new_zipfile_serialization:
        raise RuntimeError("save: PyTorch's legacy format is not written: leave out _use_new_zipfile_serialization")
    if isinstance(f, (str, os.PathLike)):
        _save_to_path(obj, os.fspath(f))
        return
    if not hasattr(f, "write"):
        raise AttributeError(f"expected 'f' to be a path or a file-like object with a 'write' attribute, got {f!r}")
    f.write(_written(obj, None) or b"")


def _save_to_path(obj: object, path: str) -> None:
    try:
        _written(obj, path)
    except (FileNotFoundError, IsADirectoryError) as problem:
        # PyTorch's class, and for a missing folder its words.
        parent = os.path.dirname(path)
        if parent and not os.path.isdir(parent):
            raise RuntimeError(f"Parent directory {parent} does not exist.") from problem
        raise RuntimeError(f"save: {problem}") from problem


def _written(obj: object, path: str | None) -> bytes | None:
    try:
        return _plimsoll._save(obj, path)
    except UnicodeEncodeError as problem:
        raise pickle.PicklingError(f"save: cannot save a text that is not valid Unicode: {problem}") from problem


def load(
    f: _Path | IO[bytes],
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Loads what `save` or `torch.save` wrote. Nothing of the file is run, whatever `weights_only` says: a class or a
    function that is not among those of tensors, containers, numbers and texts raises `pickle.UnpicklingError` with its
    name. They are PyTorch's own for `weights_only`, less what Plimsoll has no values for: complex tensors,
    float8 and unsigned dtypes but uint8, sparse, quantized and meta tensors, storages without a tensor.

    `map_location` is as in PyTorch: a device, a dict of locations, or a function of a storage and its location. With
    `mmap`, tensors in host memory lie on the mapped file: nothing is read until it is used, and the file never changes.
    """
    if weights_only and pickle_module is not None:
        raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")
    _check_pickle_arguments(pickle_load_args, pickle_module is None if weights_only is None else bool(weights_only))
    place = _place(map_location)
    try:
        return _read(f, bool(mmap), place)
    except pickle.UnpicklingError as problem:
        raise _with_safe_globals(problem) from None


#: What PyTorch's own reader of pickles takes, and Python's.
_ARGUMENTS = {True: {"encoding"}, False: {"encoding", "errors", "fix_imports", "buffers"}}


def _check_pickle_arguments(given: dict[str, Any], weights_only: bool) -> None:
    """An argument that nobody knows is one that was misspelt. Those that are known change nothing: texts are UTF-8."""
    if given and weights_only:
        warnings.warn("pickle_load_args only works if `weights_only=False`.", stacklevel=3)
    for name in given:
        if name not in _ARGUMENTS[weights_only]:
            raise TypeError(f"load() got an unexpected keyword argument '{name}'")


def _read(f: _Path | IO[bytes], mmap: bool, place: Callable[[str], Any]) -> Any:
    if isinstance(f, (str, os.PathLike)):
        try:
            return _plimsoll._load(os.fspath(f), mmap, place)
        except ValueError as problem:
            with open(f, "rb") as file:
                raise _unreadable(file.read(len(_ARCHIVE)), problem) from None
    if mmap:
        raise ValueError("f must be a file path in order to use the mmap argument")
    if not hasattr(f, "read"):
        raise AttributeError(f"expected 'f' to be a path or a file-like object with a 'read' attribute, got {f!r}")
    whole = bytes(f.read())
    try:
        return _plimsoll._load(whole, False, place)
    except ValueError as problem:
        raise _unreadable(whole[: len(_ARCHIVE)], problem) from None


def _unreadable(start: bytes, problem: ValueError) -> Exception:
    """The error of PyTorch's class for a file that PyTorch does not read either, by its first bytes."""
    if not start:
        return EOFError(f"load: {problem}")
    return problem if start in (_ARCHIVE, _LEGACY) else pickle.UnpicklingError(f"load: {problem}")


_safe_globals: dict[Any, None] = {}


def add_safe_globals(safe_globals: list[Any]) -> None:
    """Keeps classes and functions in the list that `get_safe_globals` gives. In PyTorch, files may then name them. Here
    nothing of a file is run, so `load` refuses them still, and its error says that it is not for want of being listed.

    >>> from plimsoll import serialization
    >>> serialization.add_safe_globals([frozenset])
    >>> serialization.get_safe_globals()
    [<class 'frozenset'>]
    >>> serialization.clear_safe_globals()
    """
    _safe_globals.update(dict.fromkeys(safe_globals))


def get_safe_globals() -> list[Any]:
    """The list that `add_safe_globals` adds to: classes and functions, or pairs of one and its name."""
    return list(_safe_globals)


def clear_safe_globals() -> None:
    """Empties the list."""
    _safe_globals.clear()


class safe_globals:
    """The list with more in it, for the length of a `with` block.

    >>> from plimsoll import serialization
    >>> with serialization.safe_globals([frozenset]):
    ...     serialization.get_safe_globals()
    [<class 'frozenset'>]
    >>> serialization.get_safe_globals()
    []
    """

    def __init__(self, safe_globals: list[Any]) -> None:
        self.safe_globals = safe_globals
        self._before: list[Any] = []

    def __enter__(self) -> None:
        self._before = get_safe_globals()
        add_safe_globals(self.safe_globals)

    def __exit__(self, *failure: object) -> None:
        clear_safe_globals()
        add_safe_globals(self._before)


def _with_safe_globals(problem: pickle.UnpicklingError) -> pickle.UnpicklingError:
    """The error, which for a global of the list says why the list does not help."""
    said = str(problem)
    for listed in _safe_globals:
        name = listed[1] if isinstance(listed, tuple) else f"{listed.__module__}.{listed.__qualname__}"
        names = (name, name.replace("builtins.", "__builtin__."))
        if any(f"GLOBAL {one} " in said for one in names):
            why = f"{name} is in the list of safe globals, but Plimsoll runs nothing of a file, whatever the list says"
            return pickle.UnpicklingError(f"{said}\n{why}")
    return problem


class _Storage:
    """What a function for `map_location` gets: a storage that is on the host, and can be sent elsewhere."""

    def __init__(self, device: Any) -> None:
        self.device = _plimsoll.device(device) if isinstance(device, str) else device

    def cpu(self) -> _Storage:
        return _Storage("cpu")

    def cuda(self, device: Any = None) -> _Storage:
        return _Storage(f"cuda:{device or 0}" if device is None or isinstance(device, int) else device)

    def to(self, *, device: Any, non_blocking: bool = False) -> _Storage:
        return _Storage(device)


def _place(map_location: Any) -> Callable[[str], Any]:
    """The function that gives the device of a location."""
    if map_location is None:
        return _restored
    if isinstance(map_location, dict):
        return lambda location: _restored(map_location.get(location, location))
    if isinstance(map_location, (str, _plimsoll.device)):
        return lambda location: map_location
    if not callable(map_location):
        raise TypeError(f"map_location is a device, a name, a dict or a function, not {map_location!r}")

    def asked(location: str) -> Any:
        given = map_location(_Storage("cpu"), location)
        return _restored(location) if given is None else given.device

    return asked


def _restored(location: Any) -> Any:
    """Where the file says that it was."""
    try:
        return _plimsoll.device(location) if isinstance(location, str) else location
    except RuntimeError as cause:
        raise RuntimeError(
            f"Attempting to deserialize object on {location}, which is not here: use load with "
            "map_location=plimsoll.device('cpu') to map your storages to the CPU."
        ) from cause
