"""Runs programs that other people wrote for PyTorch, on PyTorch and on Plimsoll, and compares their losses: `python programs FOLDER
--json FILE [OPTION...]`; `--help` lists the options. The folder has a clone of each repository of `listed.py`, as `owner+name`: nothing
of them is kept here.

Each program runs three times, in processes of their own and in copies of its repository that go away: PyTorch with one thread, which
writes down every random draw; PyTorch with two threads and Plimsoll with two, which get the same draws (`draws.py`). `judge.py` says
what equal is."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import judge
import page
from listed import PROGRAMS, Program

HERE = Path(__file__).resolve().parent
# Name, side, threads.
RUNS = [("first", "pytorch", 1), ("second", "pytorch", 2), ("here", "plimsoll", 2)]
# PyTorch and its libraries as on a processor that has no AVX-512.
OLDER = {"ATEN_CPU_CAPABILITY": "avx2", "MKL_ENABLE_INSTRUCTIONS": "AVX2", "ONEDNN_MAX_CPU_ISA": "AVX2"}


def run(program: Program, options: argparse.Namespace, folder: Path, which: tuple[Any, ...], settings: dict[str, str]) -> dict[str, Any]:
    """One run, in a copy of the repository."""
    side, threads = which
    draws = folder / "draws"
    copy = folder / "repository"
    shutil.copytree(options.folder / program.folder, copy, ignore=shutil.ignore_patterns(".git"))
    order = {
        "side": side,
        "threads": threads,
        "draws": str(draws),
        "replay": draws.exists(),
        "program": str(copy / program.path),
        "arguments": program.arguments,
        "paths": [str(copy / path) for path in program.paths],
        "passes": judge.RUN * program.passes,
        "unused": program.unused,
        "data": program.data,
    }
    written = folder / "order.json"
    written.write_text(json.dumps(order))
    environment = os.environ | {"PYTHONHASHSEED": "0", "PYTHONFAULTHANDLER": "1"} | settings
    try:
        done = subprocess.run(
            [sys.executable, str(HERE / "worker.py"), str(written)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=options.seconds,
            env=environment,
        )
    except subprocess.TimeoutExpired:
        return {"status": "failed", "words": f"took more than {options.seconds:.0f} s", "losses": [], "draws": 0, "seconds": options.seconds}
    finally:
        shutil.rmtree(copy)
    lines = done.stdout.splitlines()
    if not lines:
        last = next((line for line in reversed(done.stderr.splitlines()) if line.strip()), "")
        words = f"the process ended with {done.returncode}: {last}"
        return {"status": "failed", "words": words, "losses": [], "draws": 0, "seconds": 0.0, "trace": done.stderr[-8000:]}
    return json.loads(lines[-1])


def compare(program: Program, options: argparse.Namespace) -> dict[str, Any]:
    row: dict[str, Any] = {"title": program.title, "repository": program.repository, "path": program.path, "what": program.what}
    row |= {"variant": program.variant, "arguments": program.arguments, "passes": program.passes, "data": program.data}
    with tempfile.TemporaryDirectory() as place:
        for name, *which in RUNS:
            row[name] = run(program, options, Path(place), tuple(which), {})
            if row[name]["status"] == "failed" and name == "first":
                break
        verdict = judge.judged(row)
        if verdict["verdict"] == "apart":
            row["old"] = run(program, options, Path(place), ("pytorch", 1), OLDER)
            verdict = judge.judged(row)
    return row | verdict


def names(text: str) -> list[str]:
    return text.split(",")


def main() -> None:
    arguments = argparse.ArgumentParser(prog="programs")
    arguments.add_argument("folder", type=Path, help="with a clone of each repository, as `owner+name`")
    arguments.add_argument("--only", type=names, default=[], help="programs whose title has one of these texts")
    arguments.add_argument("--resume", action="store_true", help="keep the rows that the table has from a run that was stopped")
    arguments.add_argument("--verbose", action="store_true", help="with tracebacks and losses")
    arguments.add_argument("--seconds", type=float, default=300.0, help="for one run")
    arguments.add_argument("--json", type=Path, required=True)
    arguments.add_argument("--write-docs", type=Path)
    options = arguments.parse_args()
    if options.only and options.write_docs:
        raise SystemExit("--write-docs needs a whole run: without --only")
    options.folder = options.folder.resolve()
    chosen = [one for one in PROGRAMS if not options.only or any(text in one.title for text in options.only)]
    if troubles := [trouble for one in chosen if (trouble := one.trouble(options.folder))]:
        raise SystemExit("\n".join(troubles))
    if paths := os.environ.get("PYTHONPATH"):
        # Programs run in folders of their own.
        os.environ["PYTHONPATH"] = os.pathsep.join(os.path.abspath(path) for path in paths.split(os.pathsep))
    # A run of some programs does not replace the whole table.
    table = options.json.with_stem(f"some-{options.json.stem}") if options.only else options.json
    table.parent.mkdir(parents=True, exist_ok=True)
    there = {row["title"]: row for row in json.loads(table.read_text())} if options.resume and table.exists() else {}
    rows = []
    for one in chosen:
        begun = time.perf_counter()
        rows.append(there.get(one.title) or compare(one, options))
        print(page.line(rows[-1], time.perf_counter() - begun, options.verbose), flush=True)
        there[one.title] = rows[-1]
        # Each time, as a whole run takes long.
        table.write_text(json.dumps(list(there.values()), indent=1) + "\n")
    print(page.summary(rows))
    print(f"every loss is in {table}")
    if options.write_docs:
        page.write(options.write_docs, rows)


if __name__ == "__main__":
    main()
