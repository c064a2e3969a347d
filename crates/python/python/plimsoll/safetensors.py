"""Safetensors files: tensors by name, and texts beside them. Four functions of the package `safetensors.torch`."""

from __future__ import annotations

import os
from typing import Any

from . import _plimsoll
from ._plimsoll import Tensor

_Path = str | os.PathLike[str]


def save_file(tensors: dict[str, Tensor], filename: _Path, metadata: dict[str, str] | None = None) -> None:
    """Saves tensors by name. They are contiguous, and no two share memory. A file is replaced as a whole."""
    _plimsoll._save_safetensors(_checked(tensors), os.fspath(filename), metadata)


def save(tensors: dict[str, Tensor], metadata: dict[str, str] | None = None) -> bytes:
    """The bytes that `save_file` writes."""
    return _plimsoll._save_safetensors(_checked(tensors), None, metadata) or b""


def load_file(filename: _Path, device: Any = "cpu") -> dict[str, Tensor]:
    """Loads tensors by name onto a device, each copied once from the mapped file."""
    name = f"cuda:{device}" if isinstance(device, int) else device
    return _plimsoll._load_safetensors(os.fspath(filename), name)[0]


def load(data: bytes) -> dict[str, Tensor]:
    """Loads the bytes of a file."""
    return _plimsoll._load_safetensors(bytes(data), "cpu")[0]


def _checked(tensors: Any) -> dict[str, Tensor]:
    if not isinstance(tensors, dict):
        raise ValueError(f"Expected a dict of [str, torch.Tensor] but received {type(tensors)}")
    for name, tensor in tensors.items():
        if not isinstance(tensor, Tensor):
            raise ValueError(f"Key `{name}` is invalid, expected a tensor but received {type(tensor)}")
    return dict(tensors)
