"""Writes the samples that could not be recorded: tests/data/made_*. They are made here, not by PyTorch.

    python crates/report/tests/make_made.py

`made_several_devices`: two recorded samples as devices 0 and 2 of one file, device 1 without any memory; as a process that uses two
of three GPUs would write it. The recorder keeps one trace a device, so each device's figures must be those of its sample.

`made_pinned_host`: a recorded sample with the traces and segments of pinned host memory that PyTorch 2.14 and later add on request.
The host allocator rounds to a power of two, each block is a segment of its own on device -1, and a block that a copy still reads
stays pending until a later allocation sees that the copy is done. `Host` below does the same.
"""

import copy
import gzip
import pickle
from pathlib import Path

DATA = Path(__file__).parent / "data"


def load(name):
    return pickle.loads(gzip.decompress((DATA / name / f"{name}.pickle.gz").read_bytes()))


def save(name, snapshot):
    folder = DATA / name
    folder.mkdir(exist_ok=True)
    packed = gzip.compress(pickle.dumps(snapshot, protocol=4), mtime=0)
    (folder / f"{name}.pickle.gz").write_bytes(packed)


def several_devices():
    first, second = load("leak_cache"), load("clean_mlp")
    for part in second["segments"] + second["external_annotations"]:
        part["device"] = 2
    return {
        **first,
        "segments": first["segments"] + second["segments"],
        "device_traces": [first["device_traces"][0], [], second["device_traces"][0]],
        "external_annotations": first["external_annotations"] + second["external_annotations"],
    }


class Host:
    """The events and segments of PyTorch's pinned host allocator, with times of its own."""

    def __init__(self, start_us):
        self.time_us, self.next_address = start_us, 0x7F22_0000_0000
        self.trace, self.blocks, self.pending = [], {}, []

    def event(self, action, address, frames):
        self.time_us += 11
        entry = {
            "action": action, "addr": address, "size": self.blocks[address]["size"], "stream": 0, "time_us": self.time_us,
            "compile_context": "N/A", "user_metadata": "", "pool_id": (0, 0),
        }
        if frames:
            entry["frames"] = frames
        self.trace.append(entry)

    def allocate(self, bytes_asked, frames):
        for address in self.pending:
            self.event("free_completed", address, frames)
            self.blocks[address].update(state="inactive", frames=[])
        self.pending.clear()
        size = 1 << (bytes_asked - 1).bit_length()
        free = (a for a, b in self.blocks.items() if b["size"] == size and b["state"] == "inactive")
        address = next(free, None)
        if address is None:
            address = self.next_address
            self.next_address += size
            self.blocks[address] = {"size": size}
            self.event("segment_alloc", address, frames)
        self.blocks[address].update(state="active_allocated", frames=frames)
        self.event("alloc", address, frames)
        return address

    def free(self, address, frames, read_by_a_copy):
        self.event("free_requested", address, frames)
        if read_by_a_copy:
            self.blocks[address]["state"] = "active_pending_free"
            self.pending.append(address)
        else:
            self.event("free_completed", address, frames)
            self.blocks[address].update(state="inactive", frames=[])

    def segments(self):
        # PyTorch keeps them in a hash set: in no order of addresses.
        for address, block in reversed(self.blocks.items()):
            size, used = block["size"], block["state"] == "active_allocated"
            active = size if block["state"] != "inactive" else 0
            yield {
                "device": -1, "address": address, "total_size": size, "allocated_size": size * used, "active_size": active,
                "requested_size": size * used, "stream": 0, "segment_type": "small", "segment_pool_id": (0, 0),
                "is_expandable": False, "frames": block["frames"],
                "blocks": [{"address": address, "requested_size": size, **block}],
            }


def pinned_host():
    snapshot = load("pinned_host")
    call = {"name": "run_one", "filename": "programs/make_snapshots.py", "line": 60}

    def frames(line):
        return [{"name": "main", "filename": "programs/pinned_host.py", "line": line}, call]

    host = Host(snapshot["device_traces"][0][0]["time_us"])
    kept = host.allocate(96_000, frames(14))
    last = None
    for index in range(6):
        batch = host.allocate(4 * (300_000 + 1000 * index) << (index // 3), frames(16))
        if last is not None:
            host.free(last, frames(16), read_by_a_copy=True)
        last = batch
    scratch = host.allocate(96_001, frames(18))
    host.free(scratch, frames(18), read_by_a_copy=False)
    host.free(last, frames(18), read_by_a_copy=True)
    assert host.blocks[kept]["state"] == "active_allocated"
    snapshot["host_segments"], snapshot["host_traces"] = list(host.segments()), host.trace
    return snapshot


save("made_several_devices", copy.deepcopy(several_devices()))
save("made_pinned_host", pinned_host())
