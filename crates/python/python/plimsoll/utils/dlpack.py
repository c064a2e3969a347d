"""Sharing memory with other libraries, by PyTorch's names."""

from __future__ import annotations

from typing import Any

from .._plimsoll import Tensor
from .._functions_in_python import from_dlpack as from_dlpack


def to_dlpack(tensor: Tensor) -> Any:
    """A capsule over the tensor's memory, which another library takes once."""
    return tensor.__dlpack__()
