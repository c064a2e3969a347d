"""Saving and loading PyTorch's `.pt` files, without running anything of them."""

from __future__ import annotations

import os
import pickle
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
    """
    if not _use_new_zipfile_serialization:
        raise RuntimeError("save: PyTorch's legacy format is not written: leave out _use_new_zipfile_serialization")
    if isinstance(f, (str, os.PathLike)):
        _plimsoll._save(obj, os.fspath(f))
        return
    if not hasattr(f, "write"):
        raise AttributeError(f"expected 'f' to be a path or a file-like object with a 'write' attribute, got {f!r}")
    f.write(_plimsoll._save(obj, None) or b"")


def load(
    f: _Path | IO[bytes],
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = True,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Loads what `save` or `torch.save` wrote. Nothing of the file is run, whatever `weights_only` says: a class or a
    function that is not in PyTorch's own list for `weights_only` raises `pickle.UnpicklingError` with its name.

    `map_location` is as in PyTorch: a device, a dict of locations, or a function of a storage and its location. With
    `mmap`, tensors in host memory lie on the mapped file: nothing is read until it is used, and the file never changes.
    """
    place = _place(map_location)
    if isinstance(f, (str, os.PathLike)):
        try:
            return _plimsoll._load(os.fspath(f), bool(mmap), place)
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
