"""Turns PyTorch memory snapshots into the text traces beside this file.

    python make_traces.py SNAPSHOT.pickle ... OUT_DIR

A trace is one event a line, in the order in which PyTorch's allocator saw them:

    s BYTES         a segment was reserved (what the reference model must do at the same place)
    a ID BYTES      an allocation of BYTES as requested
    f ID            its free

Allocations in segments that existed before the recording began are left out: what else lived in those
segments is not in the snapshot. Of a recording that saw all its segments being born nothing is lost.
"""

import pickle
import sys
from pathlib import Path


def convert(snapshot):
    (events,) = [trace for trace in snapshot["device_traces"] if trace]
    segments = []  # (address, bytes) of those born within the trace
    live = {}
    lines = []
    left_out = 0
    number = 0
    for event in events:
        action, address, size = event["action"], event.get("addr"), event["size"]
        assert event["stream"] == 0, "these traces have one stream"
        if action == "segment_alloc":
            segments.append((address, size))
            lines.append(f"s {size}")
        elif action == "alloc":
            if any(start <= address < start + length for start, length in segments):
                live[address] = number
                lines.append(f"a {number} {size}")
                number += 1
            else:
                left_out += 1
        elif action == "free_requested":
            if address in live:
                lines.append(f"f {live.pop(address)}")
        elif action not in ("free_completed", "oom"):
            raise SystemExit(f"an event that these traces do not have: {action}")
    return lines, number, left_out, segments


def main():
    *sources, out = sys.argv[1:]
    for source in map(Path, sources):
        with source.open("rb") as file:
            lines, kept, left_out, segments = convert(pickle.load(file))
        header = (
            f"# {source.stem}: {kept} allocations, {left_out} left out, "
            f"{len(segments)} segments of {sum(size for _, size in segments)} bytes\n"
        )
        (Path(out) / f"{source.stem}.trace").write_text(header + "\n".join(lines) + "\n")
        print(header, end="")


main()
