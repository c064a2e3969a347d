"""Opens what the report crate writes with PyTorch's own torch/cuda/_memory_viz.py, and compares the figures.

    cargo build -p plimsoll-report --example rewrite
    python crates/report/tests/check_written.py target/debug/examples/rewrite

Every sample is rewritten as a pickle and as JSON; the tool must accept the pickle, print the same summary and the same log as for
the original, and the JSON must say the same as the pickle.
"""

import gzip
import json
import pickle
import subprocess
import sys
import tempfile
from pathlib import Path

from torch.cuda import _memory_viz as viz

DATA = Path(__file__).parent / "data"
rewrite = sys.argv[1]
count = 0
with tempfile.TemporaryDirectory() as folder:
    for path in sorted(p for p in DATA.glob("*/*.pickle.gz") if p.parent.name != "layouts"):
        out, as_json = Path(folder) / "out.pickle", Path(folder) / "out.json"
        subprocess.run([rewrite, path, out], check=True)
        subprocess.run([rewrite, path, as_json], check=True)
        before = pickle.loads(gzip.decompress(path.read_bytes()))
        after = pickle.loads(out.read_bytes())
        assert viz.segsum(after) == viz.segsum(before), path
        assert viz.trace(after) == viz.trace(before), path
        raw = lambda lines: "\n".join(sorted(lines.splitlines()))
        assert viz.memory(after, format_flamegraph=raw) == viz.memory(before, format_flamegraph=raw), path
        assert json.loads(as_json.read_text()) == json.loads(json.dumps(after)), path
        viz.trace_plot(after), viz.segment_plot(after)
        count += 1
print(f"{count} snapshots, rewritten, say the same in _memory_viz.py")
