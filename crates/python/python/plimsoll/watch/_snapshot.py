"""What was alive at the latest look, as a file that `plimsoll report`, `view` and `flame` open: PyTorch's layout of
memory snapshots, the host's storages among them. It has no history, as none was recorded: only what lived, with the
line that made it where a window saw that, its kind, its step and its holder."""

from __future__ import annotations

import json
import pickle
from typing import Any, NamedTuple

import torch

from . import _kinds as kinds
from ._census import Census
from ._findings import words_of
from ._making import Row, address_of, living

_CATEGORIES = {
    kinds.PARAMETER: "parameter",
    kinds.OPTIMIZER_STATE: "optimizer_state",
    kinds.GRADIENT_OF_PARAMETER: "gradient",
    kinds.GRADIENT_OF_INPUT: "gradient",
    kinds.INPUT: "input",
    kinds.ACTIVATION: "activation",
}


class Living(NamedTuple):
    """One storage that was alive."""

    device: str
    address: int
    bytes: int
    facts: dict[str, Any]


class Snapshot:
    """What lived at the end of a step: storages, and the segments of CUDA's allocator as it tells them."""

    def __init__(self, census: Census, rows: dict[int, Row], step: int):
        self.step = step
        self.living = _living(census, rows)
        # Its blocks say what is allocated, cached and free; no history is asked for.
        self.segments = torch.cuda.memory_snapshot() if torch.cuda.is_initialized() else []

    def as_layout(self) -> dict[str, Any]:
        """PyTorch's layout, with the keys that Plimsoll's files have besides."""
        count = torch.cuda.device_count() if self.segments else 0
        by_address = {(one.device, one.address): one.facts for one in self.living}
        for segment in self.segments:
            for block in segment["blocks"]:
                facts = by_address.get((f"cuda:{segment['device']}", block["address"]), {})
                # Frames that CUDA's own recording has are whole stacks, and stay.
                block.update({key: value for key, value in facts.items() if key != "frames" or not block.get("frames")})
        return {
            "segments": self.segments + _host_segments(self.living, count),
            "device_traces": [[] for _ in range(count + 1)],
            "plimsoll": {"devices": [*({"name": f"cuda:{at}"} for at in range(count)), {"name": "cpu"}]},
        }

    def written(self, path: str) -> bytes:
        """JSON if the file's name says so, or a pickle, which PyTorch's own viewer opens too."""
        layout = self.as_layout()
        return json.dumps(layout).encode() if path.endswith(".json") else pickle.dumps(layout, protocol=4)


def _living(census: Census, rows: dict[int, Row]) -> list[Living]:
    found = []
    for key, owner in census.owners.items():
        where = census.addresses.get(key)
        if where is not None:
            category = _CATEGORIES.get(owner.kind)
            found.append(Living(*where, census.bytes_of[key], _facts(rows.get(key), words_of(owner.hold), category)))
    for key, row in list(rows.items()):
        # Alive, and no name leads to it.
        if key not in census.owners:
            storage = living(row.weak)
            where = address_of(storage) if storage is not None else None
            del storage
            if where is not None:
                found.append(Living(*where, row.bytes, _facts(row, "nothing that Python names", None)))
    return found


def _facts(row: Row | None, held_by: str, category: str | None) -> dict[str, Any]:
    frames: list[dict[str, Any]] = []
    facts: dict[str, Any] = {"frames": frames}
    if row is not None:
        facts["step"] = row.step
        if row.place is not None:
            frames.append({"name": row.place.function, "filename": row.place.file, "line": row.place.line})
    # A frame around the user's line, as Plimsoll's files have for operations and modules.
    frames.append({"name": f"held by {held_by}", "filename": "plimsoll", "line": 0})
    if category is not None:
        facts["category"] = category
    return facts


def _host_segments(living: list[Living], device: int) -> list[dict[str, Any]]:
    """The host's allocator has no segments: each storage is one of its own. Two storages over the same bytes (an array
    that is shared) are told once."""
    segments: list[dict[str, Any]] = []
    end = 0
    for one in sorted((one for one in living if one.device == "cpu"), key=lambda one: (one.address, -one.bytes)):
        if one.address < max(end, 1):
            continue
        end = one.address + one.bytes
        block = {"address": one.address, "size": one.bytes, "requested_size": one.bytes, "state": "active_allocated"}
        segments.append(
            {
                "device": device,
                "address": one.address,
                "total_size": one.bytes,
                "allocated_size": one.bytes,
                "active_size": one.bytes,
                "requested_size": one.bytes,
                "stream": 0,
                "segment_type": "large",
                "segment_pool_id": (0, 0),
                "is_expandable": False,
                "frames": [],
                "blocks": [block | one.facts],
            }
        )
    return segments
