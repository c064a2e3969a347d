"""Writes tests/data/layouts: one small snapshot in every form that a reader meets, with CPython's own pickle.

    python crates/report/tests/make_layouts.py

`protocolN.pickle.gz` for each protocol, `plain.json.gz`, `segments_only.pickle.gz` (what `torch.cuda.memory_snapshot()` returns), and
`history.pickle.gz` (blocks as before 2.1, with a history instead of frames) and `torch_2_1.pickle.gz`, plus `cpp.pickle.gz` as PyTorch's C++ writer does it:
protocol 2, every list in one piece, integers of eight bytes.
"""

import gzip
import json
import pickle
import struct
from pathlib import Path

HERE = Path(__file__).parent / "data"
OUT = HERE / "layouts"
OUT.mkdir(exist_ok=True)


def save(name, written):
    (OUT / f"{name}.gz").write_bytes(gzip.compress(written, mtime=0))


snapshot = pickle.loads(gzip.decompress((HERE / "leak_cache" / "leak_cache.pickle.gz").read_bytes()))

for protocol in range(6):
    save(f"protocol{protocol}.pickle", pickle.dumps(snapshot, protocol=protocol))
save("plain.json", json.dumps(snapshot).encode())
save("segments_only.pickle", pickle.dumps(snapshot["segments"], protocol=4))

old = pickle.loads(pickle.dumps({"segments": snapshot["segments"], "device_traces": snapshot["device_traces"]}))
for segment in old["segments"]:
    for key in ("requested_size", "segment_pool_id", "is_expandable", "frames"):
        del segment[key]
    for block in segment["blocks"]:
        entry = {"addr": block["address"], "frames": block.pop("frames"), "real_size": block.pop("requested_size")}
        del block["address"]
        if block["state"] == "active_allocated":
            block["history"] = [entry]
for event in old["device_traces"][0]:
    for key in ("time_us", "compile_context", "user_metadata"):
        event.pop(key, None)
save("history.pickle", pickle.dumps(old, protocol=4))


# As PyTorch 2.1 has it: blocks with addresses and frames, and neither times nor contexts, settings nor annotations.
first = pickle.loads(pickle.dumps({"segments": snapshot["segments"], "device_traces": snapshot["device_traces"]}))
for event in first["device_traces"][0]:
    for key in ("time_us", "compile_context", "user_metadata", "pool_id"):
        event.pop(key, None)
save("torch_2_1.pickle", pickle.dumps(first, protocol=4))


def cpp(value, memo):
    """As torch/csrc/jit/serialization/pickler.cpp writes values."""
    if isinstance(value, bool):
        return b"\x88" if value else b"\x89"
    if isinstance(value, int):
        return b"\x8a\x08" + struct.pack("<q", value) if abs(value) >= 2**31 else b"J" + struct.pack("<i", value)
    if isinstance(value, float):
        return b"G" + struct.pack(">d", value)
    if isinstance(value, str):
        if value in memo:
            at = memo[value]
            return b"h" + bytes([at]) if at < 256 else b"j" + struct.pack("<I", at)
        memo[value] = at = len(memo)
        text = value.encode()
        put = b"q" + bytes([at]) if at < 256 else b"r" + struct.pack("<I", at)
        return b"X" + struct.pack("<I", len(text)) + text + put
    if isinstance(value, tuple):
        return b"(" + b"".join(cpp(item, memo) for item in value) + b"t"
    if isinstance(value, list):
        return b"](" + b"".join(cpp(item, memo) for item in value) + b"e"
    items = (cpp(key, memo) + cpp(item, memo) for key, item in value.items())
    return b"}(" + b"".join(items) + b"u"


written = b"\x80\x02" + cpp(snapshot, {}) + b"."
assert pickle.loads(written) == snapshot
save("cpp.pickle", written)
