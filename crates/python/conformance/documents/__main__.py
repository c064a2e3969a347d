"""Runs every Python block of a folder of documents with PyTorch and with Plimsoll: `python documents FOLDER [OPTION...]`, with an
interpreter that has PyTorch and finds the package; `--help` lists the options.

A block falls into the parts that it marks as wrong or right (`blocks.py`). Each part is a script (`script.py`) with a prelude of
the names that it leaves undefined (`prelude.py`) and calls of what it defines (`calls.py`). PyTorch says what it raises and where
(`theirs.py`); `plimsoll run` must do the same (`ours.py`), on the CPU and on what answers as `cuda`. Fails if it does not."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import blocks  # noqa: E402
import page  # noqa: E402
import recorded  # noqa: E402
import theirs  # noqa: E402
import torch  # noqa: E402
from script import scripts  # noqa: E402


def names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("folder", type=Path, help="where the documents are, as text files")
    arguments.add_argument("--only", type=names, default=[], help="blocks of these names, such as 000:69")
    arguments.add_argument("--json", type=Path, help="keep the table here")
    arguments.add_argument("--write-docs", type=Path, help="write the table of blocks as this page")
    arguments.add_argument("--record", type=Path, help="write blocks and PyTorch's answers here, and compare nothing")
    options = arguments.parse_args()
    found = [block for block in blocks.read(options.folder) if not options.only or block.name in options.only]
    if not found:
        sys.exit(f"{options.folder} has no text file with a block of Python")
    version = torch.__version__.split("+")[0]
    answers = {one.name: theirs.answer(one) for block in found for one in scripts(block)}
    if options.record:
        recorded.write(options.record, version, found, answers)
        print(f"{options.record}: {len(found)} blocks, {len(answers)} scripts, {options.record.stat().st_size} bytes")
        return
    rows = []
    for row in recorded.compared(found, answers):
        rows.append(row)
        print(f"{row['name']:<20} {row['kind']:<6} {row['where']:<5} {row['wrong'] or 'as PyTorch'}", flush=True)
    wrong = sum(row["wrong"] is not None for row in rows)
    print(f"{len(found)} blocks, {len(answers)} scripts: {len(rows) - wrong} of {len(rows)} runs are as PyTorch {version}")
    if options.json and not options.only:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(rows, indent=1) + "\n")
    if options.write_docs and not options.only:
        page.write(options.write_docs, version, found, answers, rows)
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
