"""Compares Plimsoll's modules, optimizers and schedulers with PyTorch's, on all inputs of PyTorch's own databases and on what
they leave out: `python training [OPTION...]`, with an interpreter that has PyTorch and finds the package; `--help` lists the
options.

Fails if something that is there gives a wrong value, gradient, state, text, copy or error, or if something is missing."""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
# Translating names and tensors is shared with the operations.
sys.path[:0] = [str(HERE), str(HERE.parent / "operations")]

import entry  # noqa: E402
import further  # noqa: E402
import optimizers  # noqa: E402
import schedulers  # noqa: E402
from torch.testing._internal.common_modules import module_db  # noqa: E402

# What a part of the run checks, as columns of its table.
PARTS = {
    "modules": ["state", "text", "output", "gradients", "copies", "first values"],
    "optimizers": optimizers.COLUMNS,
    "schedulers": schedulers.COLUMNS,
}

Entry = tuple[str, Callable[[], dict[str, Any]]]


def line(row: dict[str, Any], columns: list[str], verbose: bool) -> str:
    """One row of the table, with what is wrong below it."""
    counts = "  ".join(f"{row['passed'].get(name, 0):>5}" for name in columns)
    verdict = "WRONG" if row["failures"] else "whole"
    text = f"{row['name']:<34} {row['samples']:>7}  {counts}  {row['seconds']:>6.1f}  {verdict}"
    shown = row["failures"] if verbose else row["failures"][:2]
    hidden = len(row["failures"]) - len(shown)
    text += "".join(f"\n    {failure}" for failure in shown)
    return text + (f"\n    and {hidden} more" if hidden > 0 else "")


def names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def entries(part: str, dtypes: list[str]) -> Iterator[Entry]:
    """The names of a part, and what judges each."""
    if part == "modules":
        for info in [*module_db, *further.ENTRIES]:
            yield info.name, lambda info=info: entry.judged(info, dtypes)
    elif part == "optimizers":
        for info in optimizers.entries():
            yield info.optim_cls.__name__, lambda info=info: optimizers.judged(info, dtypes)
    else:
        for name in schedulers.ENTRIES:
            yield name, lambda name=name: schedulers.judged(name)


def judged(part: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    """The rows of a part, printed as they come."""
    columns, rows = PARTS[part], []
    for name, judge in entries(part, options.dtype):
        if options.only and name not in options.only and name.removeprefix("nn.").split()[0] not in options.only:
            continue
        if not rows:
            heads = "  ".join(f"{column[:5]:>5}" for column in columns)
            print(f"{part[:-1]:<34} {'samples':>7}  {heads}  {'s':>6}")
        began = time.perf_counter()
        row = judge()
        row["seconds"] = time.perf_counter() - began
        rows.append(row)
        print(line(row, columns, options.verbose), flush=True)
    wrong = sum(bool(row["failures"]) for row in rows)
    if rows:
        samples = sum(row["samples"] for row in rows)
        print(f"{len(rows) - wrong} of {len(rows)} {part} are whole, over {samples} samples")
    return rows


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--part", type=names, default=list(PARTS), help="of modules, optimizers, schedulers")
    arguments.add_argument("--only", type=names, default=[], help="entries of these names, with or without `nn.`")
    arguments.add_argument("--dtype", type=names, default=list(entry.DTYPES), help="only these dtypes")
    arguments.add_argument("--verbose", action="store_true", help="every failure, not only the first two")
    arguments.add_argument("--json", type=Path, help="write the whole table here")
    options = arguments.parse_args()
    warnings.simplefilter("ignore")
    rows = [row for part in PARTS if part in options.part for row in judged(part, options)]
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps({"entries": rows}, indent=1) + "\n")
    sys.exit(any(row["failures"] for row in rows) or not rows)


if __name__ == "__main__":
    main()
