"""Writes summary.txt and summary_abbreviated.txt: what PyTorch's own memory_summary prints for the
figures that the test in src/summary.rs uses too.

    python make_summary.py OUT_DIR
"""

import sys
from pathlib import Path

import torch.cuda.memory as memory

POOLED = [
    "allocated_bytes", "active_bytes", "requested_bytes", "reserved_bytes", "inactive_split_bytes",
    "allocation", "active", "segment", "inactive_split",
]


def figures():
    seed = 0

    def stat(name, out):
        nonlocal seed
        seed += 1
        for n, part in enumerate(("current", "peak", "allocated", "freed"), start=1):
            out[f"{name}.{part}"] = (seed * 7 + n) ** 3 * 10 ** ((seed + n) % 7)

    out = {"num_ooms": 12, "num_alloc_retries": 345}
    for name in POOLED:
        for pool in ("all", "large_pool", "small_pool"):
            stat(f"{name}.{pool}", out)
    stat("oversize_allocations", out)
    stat("oversize_segments", out)
    return out


memory.memory_stats = lambda device=None: figures()
memory._get_device_index = lambda device, optional=False: 0
out = Path(sys.argv[1])
(out / "summary.txt").write_text(memory.memory_summary())
(out / "summary_abbreviated.txt").write_text(memory.memory_summary(abbreviated=True))
