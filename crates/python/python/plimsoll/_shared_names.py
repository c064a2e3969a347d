"""Which names of a state show the same memory, and which of them a file that knows no sharing keeps. Nothing is written
here; `safetensors.py` does that."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from ._plimsoll import Tensor


def dropped_names(state: dict[str, Tensor], preferred: Collection[str] = ()) -> dict[str, list[str]]:
    """For each name that is kept for others too, those others. Of several that show all of their memory the first in
    the alphabet is kept, one of `preferred` before all others."""
    dropped = {}
    for names in _sharing(state):
        whole = [name for name in names if _is_whole(state[name])]
        if not whole:
            raise RuntimeError(
                "Error while trying to find names to remove to save state dict, but found no suitable name to keep for "
                f"saving amongst: {set(names)}. None is covering the entire storage. Refusing to save/load the model "
                "since you could be storing much more memory than needed: clone() what shows a part alone."
            )
        kept = min([name for name in whole if name in preferred] or whole)
        if len(names) > 1:
            dropped[kept] = [name for name in names if name != kept]
    return dropped


def _sharing(state: dict[str, Tensor]) -> list[list[str]]:
    """The names in groups that overlap in memory, each in the order of the alphabet."""
    by_storage: dict[Any, list[str]] = {}
    for name, tensor in state.items():
        storage = tensor.untyped_storage()
        if storage.nbytes():
            by_storage.setdefault((tensor.device, storage.data_ptr()), []).append(name)
    groups = []
    for names in by_storage.values():
        end = -1
        for start, stop, name in sorted((*_reach(state[name]), name) for name in names):
            if start >= end:
                groups.append([name])
            else:
                groups[-1].append(name)
            end = max(end, stop)
    return sorted(sorted(names) for names in groups)


def _reach(tensor: Tensor) -> tuple[int, int]:
    """The first element of the storage that it shows, and the one after the last, in bytes."""
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride()))
    first = tensor.storage_offset()
    stop = first + last + 1 if tensor.numel() else first
    return first * tensor.element_size(), stop * tensor.element_size()


def _is_whole(tensor: Tensor) -> bool:
    return tensor.storage_offset() == 0 and tensor.numel() * tensor.element_size() == tensor.untyped_storage().nbytes()
