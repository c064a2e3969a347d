"""Runs every program of this folder on a GPU, each in a process of its own, and writes OUTDIR/NAME.pickle.

    python crates/report/tests/programs/make_snapshots.py OUTDIR [NAME...]

A program is a file with `main()`, which returns whatever must stay alive until the snapshot is taken. Two things may be set at
its top: ENVIRONMENT (variables of its process) and RECORD (arguments of `_record_memory_history`). File names in the snapshots
are shortened to `programs/NAME.py` and `site-packages/...`, so that they do not depend on the machine.
The samples of the tests are such files packed by gzip, as ../data/NAME/NAME.pickle.gz.
"""

import os
import pickle
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def load(name):
    # The short name goes into every frame of the program.
    path = f"programs/{name}.py"
    module = type(sys)(name)
    code = compile((HERE / f"{name}.py").read_text(), path, "exec")
    exec(code, module.__dict__)
    return module


def shorten(snapshot):
    seen = set()

    def visit(frames):
        for frame in frames or []:
            if isinstance(frame, dict) and id(frame) not in seen:
                seen.add(id(frame))
                name = frame["filename"]
                if "site-packages/" in name:
                    frame["filename"] = name[name.index("site-packages/"):]
                elif "/lib/python3" in name:
                    frame["filename"] = name[name.index("/lib/python3") + 1:]
                elif name.endswith("make_snapshots.py"):
                    frame["filename"] = "programs/make_snapshots.py"

    for segment in snapshot["segments"] + snapshot.get("host_segments", []):
        visit(segment.get("frames"))
        for block in segment["blocks"]:
            visit(block.get("frames"))
    for trace in [*snapshot["device_traces"], snapshot.get("host_traces", [])]:
        for event in trace:
            visit(event.get("frames"))


def run_one(name, out):
    import torch

    program = load(name)
    record = {"max_entries": 100_000, "stacks": "python", **getattr(program, "RECORD", {})}
    # The context and the libraries' handles come first, so that each trace starts at the program.
    torch.zeros(1, device="cuda")
    torch.cuda.synchronize()
    torch.cuda.memory._record_memory_history(**record)
    kept = program.main()
    torch.cuda.synchronize()
    snapshot = torch.cuda.memory._snapshot()
    torch.cuda.memory._record_memory_history(enabled=None)
    shorten(snapshot)
    out.write_bytes(pickle.dumps(snapshot, protocol=4))
    del kept


def main():
    if sys.argv[1] == "--one":
        return run_one(sys.argv[2], Path(sys.argv[3]))
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    names = sys.argv[2:] or sorted(p.stem for p in HERE.glob("*.py") if p.stem != "make_snapshots")
    failed = []
    for name in names:
        environment = {**os.environ, **getattr(load_environment(name), "ENVIRONMENT", {})}
        out = folder / f"{name}.pickle"
        done = subprocess.run([sys.executable, __file__, "--one", name, str(out)], env=environment)
        size = out.stat().st_size if out.exists() else 0
        print(f"{name:28} {'ok' if done.returncode == 0 else 'FAILED':7} {size:9} bytes", flush=True)
        if done.returncode != 0:
            failed.append(name)
    return f"failed: {failed}" if failed else 0


def load_environment(name):
    """Only the settings at a program's top: the rest of it may need a GPU."""
    settings = type(sys)(name)
    for line in (HERE / f"{name}.py").read_text().splitlines():
        if line.startswith("ENVIRONMENT = "):
            exec(line, settings.__dict__)
    return settings


sys.exit(main())
