"""Runs programs that other people wrote for PyTorch, on PyTorch and on Plimsoll, and compares their losses: `python programs FOLDER
--json FILE [OPTION...]`; `--help` lists the options. The folder has a clone of each repository of `listed.py`, as `owner+name`: nothing
of them is kept here.

Each program runs three times, in processes of their own and in copies of its repository that go away (`runs.py`): PyTorch with one
thread, which writes down every random draw; PyTorch with two threads and Plimsoll with two, which get the same draws (`draws.py`).
`judge.py` says what equal is."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent.parent))

import judge  # noqa: E402
import page  # noqa: E402
import runs  # noqa: E402
from listed import PROGRAMS, Program  # noqa: E402
from processes import with_absolute_paths  # noqa: E402


def compare(program: Program, sides: runs.Sides) -> dict[str, Any]:
    row: dict[str, Any] = {"title": program.title, "repository": program.repository, "path": program.path, "what": program.what}
    row |= {"variant": program.variant, "arguments": program.arguments, "passes": program.passes, "data": program.data}
    with tempfile.TemporaryDirectory() as place:
        one = runs.Runs(program, sides, Path(place))
        row["first"] = one.run("pytorch", 1)
        if row["first"]["status"] != "failed":
            row |= {"second": one.run("pytorch", 2), "here": one.run("plimsoll", 2)}
        verdict = judge.judged(row)
        if verdict["verdict"] == "apart":
            row |= {side: one.run(side, 1) for side in runs.OLDER}
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
    # Programs run in folders of their own.
    os.environ.update(with_absolute_paths(os.environ))
    # A run of some programs does not replace the whole table.
    table = options.json.with_stem(f"some-{options.json.stem}") if options.only else options.json
    table.parent.mkdir(parents=True, exist_ok=True)
    there = {row["title"]: row for row in json.loads(table.read_text())} if options.resume and table.exists() else {}
    rows, sides = [], runs.Sides(options.folder, options.seconds)
    for one in chosen:
        begun = time.perf_counter()
        rows.append(there.get(one.title) or compare(one, sides))
        print(page.line(rows[-1], time.perf_counter() - begun, options.verbose), flush=True)
        there[one.title] = rows[-1]
        # Each time, as a whole run takes long.
        table.write_text(json.dumps(list(there.values()), indent=1) + "\n")
    sides.close()
    print(page.summary(rows))
    print(f"every loss is in {table}")
    if options.write_docs:
        page.write(options.write_docs, rows)


if __name__ == "__main__":
    main()
