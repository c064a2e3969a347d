"""Who holds what is left when the program has ended: every tensor that can be reached from the program's names, by the
name that leads to it. `_holders.py` is the same for lines, while the program runs."""

from __future__ import annotations

import collections
from typing import Any, NamedTuple

from .._plimsoll import memory_allocated
from ..watch._holders import Hold
from ._holders import walk_tensors


class Held(NamedTuple):
    """What one name of the program holds on a device."""

    device: str
    name: str
    bytes: int
    tensors: int


def who_holds(devices: list[Any], traceback: Any) -> list[Held]:
    """By name, the largest first. What no name leads to is one row a device: what graphs saved, or a library holds."""
    storages: dict[tuple[str, int], tuple[int, str]] = {}
    graphs: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)

    def on_tensor(tensor: Any, hold: Hold) -> None:
        _note(storages, tensor, hold)
        if tensor.grad_fn is not None:
            graphs[str(tensor.device)][_name(hold)] += 1

    walk_tensors(on_tensor, [], traceback)
    sums: dict[tuple[str, str], list[int]] = collections.defaultdict(lambda: [0, 0])
    for (device, _), (nbytes, name) in storages.items():
        row = sums[device, name]
        row[0] += nbytes
        row[1] += 1
    rows = [Held(device, name, *row) for (device, name), row in sums.items()]
    for device in devices:
        named = sum(row.bytes for row in rows if row.device == str(device))
        rest = memory_allocated(device) - named
        if rest > 0:
            rows.append(Held(str(device), _unnamed([name for name, _ in graphs[str(device)].most_common()]), rest, 0))
    return sorted(rows, key=lambda row: -row.bytes)


def _unnamed(holders: list[str]) -> str:
    """What no name leads to: values that graphs saved, if there are graphs, or what libraries hold."""
    if not holders:
        return "no name of the program"
    more = f" and {len(holders) - 1} more" if len(holders) > 1 else ""
    return f"the graph behind {holders[0]}{more}"


def _note(storages: dict[tuple[str, int], tuple[int, str]], tensor: Any, hold: Hold) -> None:
    storage = tensor.untyped_storage()
    nbytes = storage.nbytes()
    # The allocator's rounding, so that what is named adds up with what is allocated.
    rounded = -(-nbytes // 512) * 512
    device = str(tensor.device)
    if rounded:
        storages.setdefault((device, storage._cdata), (rounded, _name(hold)))


def _name(hold: Hold) -> str:
    """The name at the beginning of the path, and what of it: `model`, `.grad` of `model`."""
    path = hold.path()
    name = path[0].words()
    return f"gradients of {name}" if path[-1].how == "grad" else name
