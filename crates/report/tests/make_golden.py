"""Writes tests/data/NAME/golden.json for every tests/data/NAME/NAME.pickle.gz: what PyTorch's own tool says about it.

    python crates/report/tests/make_golden.py

Totals and figures of segments come from the functions of torch/cuda/_memory_viz.py itself. Peaks follow the rule of PyTorch's
web viewer (requested bytes; a block ends when its free completes; what the trace does not explain was there before it), as
the Python tool has none. The version of PyTorch is written beside the figures.
"""

import gzip
import json
import pickle
from collections import Counter
from pathlib import Path

import torch
from torch.cuda import _memory_viz as viz

DATA = Path(__file__).parent / "data"


def totals_of(snapshot):
    reserved = requested = free_external = free_internal = 0
    segments = []
    for segment in snapshot["segments"]:
        active = [b for b in segment["blocks"] if b["state"] == "active_allocated"]
        wanted = sum(viz._block_extra(b)[1] for b in active)
        external = sum(b["size"] for b in segment["blocks"] if b["state"] != "active_allocated")
        internal = viz.calc_active(segment) - wanted
        segments.append([segment["address"], segment["total_size"], viz.calc_active(segment), wanted])
        reserved += segment["total_size"]
        requested += wanted
        free_external += external
        free_internal += internal
    text = viz.segsum(snapshot)
    for line in (
        f"segments: {len(segments)}",
        f"total_reserved: {viz.Bytes(reserved)}",
        f"total_allocated: {viz.Bytes(requested)}",
    ):
        assert line + "\n" in text, (line, text)
    assert f"total_free: {viz._report_free(free_external, free_internal)}\n" in text
    return {
        "reserved": reserved, "requested": requested, "free_external": free_external,
        "free_internal": free_internal, "segments": segments,
    }


def by_stack(snapshot):
    """Bytes of active blocks by innermost frame, from the lines that the tool hands to flamegraph.pl."""
    lines = viz.memory(snapshot, format_flamegraph=lambda text: text)
    found = Counter()
    for line in lines.splitlines():
        stack, size = line.rsplit(" ", 1)
        _, state, *frames = stack.split(";")
        if state == "active_allocated" and frames != ["<gaps>"]:
            found[frames[-1]] += int(size)
    return dict(sorted(found.items()))


def peaks(trace, alloc, free, initial):
    """The rule of the web viewer: (bytes before the trace, highest bytes, bytes at the end)."""
    live, now, before = {}, [], 0
    for event in trace:
        if event["action"] == alloc:
            live[event["addr"]] = event["size"]
            now.append(event["size"])
        elif event["action"] == free:
            size = live.pop(event["addr"], None)
            if size is None:
                before += event["size"]
                size = event["size"]
            now.append(-size)
    before += sum(size for addr, size in initial.items() if addr not in live)
    total = highest = before
    for change in now:
        total += change
        highest = max(highest, total)
    return [before, highest, total]


def devices_of(snapshot):
    traces = dict(enumerate(snapshot["device_traces"]))
    traces[-1] = snapshot.get("host_traces", [])
    found = []
    for device, trace in traces.items():
        segments = [s for s in snapshot["segments"] + snapshot.get("host_segments", []) if s["device"] == device]
        if not segments and not trace:
            continue
        blocks = {}
        for segment in segments:
            at = segment["address"]
            for block in segment["blocks"]:
                if block["state"].startswith("active"):
                    blocks[at] = viz._block_extra(block)[1]
                at += block["size"]
        whole = {s["address"]: s["total_size"] for s in segments}
        entry = {
            "device": device,
            "events": dict(Counter(e["action"] for e in trace)),
            "live": peaks(trace, "alloc", "free_completed", blocks),
        }
        if not any(s.get("is_expandable") for s in segments):
            entry["reserved"] = peaks(trace, "segment_alloc", "segment_free", whole)
        found.append(entry)
    return found


for path in sorted(p for p in DATA.glob("*/*.pickle.gz") if p.parent.name != "layouts"):
    snapshot = pickle.loads(gzip.decompress(path.read_bytes()))
    golden = {
        "torch": torch.__version__,
        "totals": totals_of(snapshot),
        "by_innermost_frame": by_stack(snapshot),
        "devices": devices_of(snapshot),
    }
    path.with_name("golden.json").write_text(json.dumps(golden, indent=1) + "\n")
    print(path.name, golden["devices"])
