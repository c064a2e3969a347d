"""The blocks and PyTorch's answers as one file, from which CI runs them without the documents and without PyTorch.

`python recorded.py FILE` compares what is in it with Plimsoll, on the card if there is one; with `--pytorch` it asks on a machine
that has both a card and PyTorch whether that PyTorch does what is recorded. `--help` lists the options."""

from __future__ import annotations

import argparse
import datetime
import importlib
import json
import os
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import ours
from blocks import Block
from script import Script, scripts


def write(path: Path, version: str, blocks: list[Block], answers: dict[str, Any]) -> None:
    """Writes the file: one line a block, so that a change is seen."""
    lines = [
        json.dumps({**block.written(), "answers": {one.name: answers[one.name] for one in scripts(block)}}, ensure_ascii=False)
        for block in blocks
    ]
    text = f'{{"pytorch": "{version}", "blocks": [\n' + ",\n".join(lines) + "\n]}\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def read(path: Path) -> tuple[str, list[Block], dict[str, Any]]:
    """PyTorch's version, the blocks, and its answers by the names of scripts."""
    told = json.loads(path.read_text())
    blocks = [Block(one["document"], one["line"], one["lines"]) for one in told["blocks"]]
    return told["pytorch"], blocks, {name: answer for one in told["blocks"] for name, answer in one["answers"].items()}


def runs(blocks: Iterable[Block]) -> Iterator[tuple[Script, str]]:
    """Every script with where it runs: all on the CPU, those that name a GPU on that too."""
    for block in blocks:
        for script in scripts(block):
            yield script, "cpu"
            if script.says_cuda:
                yield script, "cuda"


def compared(
    blocks: Iterable[Block], answers: dict[str, Any], places: tuple[str, ...] = ("cpu", "cuda"), pytorch: bool = False
) -> Iterator[dict[str, Any]]:
    """A row for every run, in order: what it raised, and what of it is not PyTorch's."""

    def row(run: tuple[Script, str]) -> dict[str, Any]:
        script, where = run
        own = ours.answer(script.text if where == "cuda" else script.on_cpu(), where, pytorch)
        wrong = ours.difference(answers[script.name], own, where)
        return {"name": script.name, "kind": script.kind, "where": where, "raises": own["raises"], "wrong": wrong}

    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        yield from pool.map(row, [run for run in runs(blocks) if run[1] in places])


def _card(pytorch: bool) -> str | None:
    """The name of the card, if there is one."""
    module = importlib.import_module("torch" if pytorch else "plimsoll")
    return module.cuda.get_device_name() if module.cuda.is_available() else None


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("recorded", type=Path)
    arguments.add_argument("--json", type=Path, help="write the rows here, with the name of the card")
    arguments.add_argument("--where", choices=["cpu", "cuda"], help="only runs there")
    arguments.add_argument("--pytorch", action="store_true", help="ask the interpreter's PyTorch, not Plimsoll")
    options = arguments.parse_args()
    _, blocks, answers = read(options.recorded)
    rows = []
    for row in compared(blocks, answers, (options.where,) if options.where else ("cpu", "cuda"), options.pytorch):
        rows.append(row)
        if row["wrong"]:
            print(f"{row['name']} on {row['where']}: {row['wrong']}", flush=True)
    wrong = sum(row["wrong"] is not None for row in rows)
    print(f"{len(rows) - wrong} of {len(rows)} runs are as recorded")
    if options.json:
        told = {"device": _card(options.pytorch), "date": datetime.date.today().isoformat(), "rows": rows}
        options.json.write_text(json.dumps(told, indent=1) + "\n")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
