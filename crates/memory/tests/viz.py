"""Opens a snapshot of Plimsoll with PyTorch's own torch/cuda/_memory_viz.py.

    cargo run -p plimsoll-memory --example write_snapshot -- FOLDER
    python viz.py FOLDER

Needs PyTorch installed (its file is run as a script; torch itself is not imported). Exits with 0 if the
tool's `stats`, `trace`, `trace_plot` and `segment_plot` accept the file, its totals are those of
Plimsoll's memory_stats, and the JSON file says the same as the pickle.
"""

import importlib.util
import json
import pickle
import pickletools
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

ALLOWED_OPCODES = set(
    "PROTO FRAME STOP MARK MEMOIZE BINGET LONG_BINGET EMPTY_DICT SETITEMS EMPTY_LIST APPENDS TUPLE2 "
    "NEWTRUE NEWFALSE BININT BININT1 BININT2 LONG1 BINFLOAT SHORT_BINUNICODE BINUNICODE".split()
)
ACTIONS = {
    "alloc", "free_requested", "free_completed", "segment_alloc", "segment_free", "oom", "annotate",
}
CATEGORIES = {
    "input", "temporary", "activation", "gradient", "parameter", "optimizer_state", "unknown",
}


def memory_viz():
    spec = importlib.util.find_spec("torch")
    if spec is None:
        sys.exit("viz.py: PyTorch is not installed in this Python")
    return Path(spec.submodule_search_locations[0]) / "cuda" / "_memory_viz.py"


def run_viz(*arguments):
    command = [sys.executable, str(memory_viz()), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def shown_size(bytes_):
    """A size as _memory_viz.py prints it."""
    size = float(bytes_)
    for unit in ["", "Ki", "Mi", "Gi"]:
        if size < 1024:
            return f"{size:3.1f}{unit}B"
        size /= 1024
    raise AssertionError("larger than this test")


def check_opcodes(data):
    batch = marks = 0
    for opcode, _, _ in pickletools.genops(data):
        assert opcode.name in ALLOWED_OPCODES, opcode.name
    # CPython's reader accepts any batch; the web viewer does not. Values between a mark and its end:
    depth = []
    for opcode, argument, _ in pickletools.genops(data):
        if opcode.name == "MARK":
            depth.append(0)
            marks += 1
        elif opcode.name in ("APPENDS", "SETITEMS"):
            batch = max(batch, depth.pop() // (2 if opcode.name == "SETITEMS" else 1))
        elif opcode.name not in ("MEMOIZE", "FRAME", "PROTO", "STOP") and depth:
            depth[-1] += -1 if opcode.name == "TUPLE2" else 1
        if opcode.name == "LONG1":
            assert abs(argument) < 2**63
    assert marks and batch <= 1000, batch
    assert data[:2] == b"\x80\x04" and data[2] == 0x95, "protocol 4, framed"


def check_totals(snapshot):
    (device,) = snapshot["plimsoll"]["devices"]
    stats = device["memory_stats"]
    assert len(stats) == 123, len(stats)
    segments = snapshot["segments"]
    blocks = [block for segment in segments for block in segment["blocks"]]
    active = [block for block in blocks if block["state"].startswith("active")]
    allocated = [block for block in active if block["state"] == "active_allocated"]
    total = lambda items, key: sum(item[key] for item in items)
    for name, value in {
        "reserved_bytes": total(segments, "total_size"),
        "allocated_bytes": total(segments, "allocated_size"),
        "active_bytes": total(segments, "active_size"),
        "requested_bytes": total(segments, "requested_size"),
        "segment": len(segments),
        "allocation": len(allocated),
        "active": len(active),
    }.items():
        assert stats[f"{name}.all.current"] == value, (name, stats[f"{name}.all.current"], value)
    for pool in ("small", "large"):
        mine = [segment for segment in segments if segment["segment_type"] == pool]
        assert stats[f"reserved_bytes.{pool}_pool.current"] == total(mine, "total_size")
        assert stats[f"allocated_bytes.{pool}_pool.current"] == total(mine, "allocated_size")
    assert total(allocated, "size") == stats["allocated_bytes.all.current"]
    for segment in segments:
        end = segment["address"]
        for block in segment["blocks"]:
            assert block["address"] == end, "blocks tile their segment"
            end += block["size"]
        assert end == segment["address"] + segment["total_size"]
    for block in active:
        assert block["category"] in CATEGORIES and block["frames"]
    return stats


def check_trace(snapshot, stats):
    """Replays the trace; as nothing was dropped it must end in the state of the segments."""
    (trace,) = snapshot["device_traces"]
    assert not snapshot["allocator_settings"]["trace_alloc_overflowed"]
    live, segments, freeing = {}, {}, {}
    for entry in trace:
        action, size = entry["action"], entry["size"]
        assert action in ACTIONS, action
        if action == "alloc":
            assert entry["addr"] not in live and entry["category"] in CATEGORIES
            live[entry["addr"]] = size
        elif action == "free_requested":
            freeing[entry["addr"]] = live.pop(entry["addr"])
        elif action == "free_completed":
            assert freeing.pop(entry["addr"]) == size
        elif action == "segment_alloc":
            segments[entry["addr"]] = size
        elif action == "segment_free":
            assert segments.pop(entry["addr"]) == size
        elif action == "oom":
            assert "device_free" in entry and "addr" not in entry
    times = [entry["time_us"] for entry in trace]
    assert times == sorted(times)
    assert sum(live.values()) == stats["requested_bytes.all.current"]
    assert segments == {s["address"]: s["total_size"] for s in snapshot["segments"]}
    counts = Counter(entry["action"] for entry in trace)
    assert counts["alloc"] == stats["allocation.all.allocated"]
    assert counts["segment_alloc"] == stats["num_device_alloc"]
    assert counts["oom"] == stats["num_ooms"] == 1
    return counts


def check_frames(snapshot):
    (trace,) = snapshot["device_traces"]
    relu = [e for e in trace if e["action"] == "alloc" and e["frames"][0]["name"] == "relu"]
    names = [frame["name"] for frame in relu[0]["frames"]]
    files = [frame["filename"] for frame in relu[0]["frames"]]
    assert names[0] == "relu" and names[2:] == ["layers.0", "forward"], names
    assert files[1].endswith("write_snapshot.rs") and relu[0]["frames"][1]["line"] > 0, files
    assert all(entry["category"] == "activation" for entry in relu), "the kind that it became"
    assert relu[0]["frames"] is relu[4]["frames"], "equal frames are one object"
    names = [a["name"] for a in snapshot["external_annotations"] if a["stage"] == "START"]
    assert names.count("backward") == 300 and "step 300" in names, names[-5:]


def main():
    folder = Path(sys.argv[1])
    data = (folder / "snapshot.pickle").read_bytes()
    check_opcodes(data)
    snapshot = pickle.loads(data)
    stats = check_totals(snapshot)
    counts = check_trace(snapshot, stats)
    check_frames(snapshot)

    flat = json.loads(json.dumps(snapshot))  # tuples become lists
    assert json.loads((folder / "snapshot.json").read_text()) == flat, "JSON and pickle agree"

    summary = run_viz("stats", folder / "snapshot.pickle")
    reserved = shown_size(stats["reserved_bytes.all.current"])
    requested = shown_size(stats["requested_bytes.all.current"])
    assert f"total_reserved: {reserved}\n" in summary, summary
    assert f"total_allocated: {requested}\n" in summary, summary
    assert f"segments: {len(snapshot['segments'])}\n" in summary, summary
    log = run_viz("trace", folder / "snapshot.pickle")
    assert log.startswith("Device 0 ----------------\n") and "OutOfMemoryError" in log
    assert log.count("= cudaMalloc(") == counts["segment_alloc"]
    with tempfile.TemporaryDirectory() as out:
        for plot in ("trace_plot", "segment_plot"):
            page = Path(out) / f"{plot}.html"
            run_viz(plot, folder / "snapshot.pickle", "-o", page)
            assert "snapshot.pickle" in page.read_text()
    print(
        f"viz.py: {len(data)} bytes, {sum(counts.values())} entries, reserved {reserved}, "
        f"requested {requested}: PyTorch's tools agree"
    )


main()
