"""Compares Plimsoll's modules, optimizers, schedulers, mixed precision and files with PyTorch's, on all inputs of PyTorch's own
databases and on what they leave out: `python training [OPTION...]`, with an interpreter that has PyTorch and finds the package;
`--help` lists the options. `--record FILE` writes down a part of it for CI (`golden.py`).

Fails if something that is there gives a wrong value, gradient, state, text, copy or error, or if something is missing."""

from __future__ import annotations

import argparse
import collections
import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
# Translating names and tensors is shared with the operations.
sys.path[:0] = [str(HERE), str(HERE.parent / "operations"), str(HERE.parent)]

import autocast  # noqa: E402
import entry  # noqa: E402
import files  # noqa: E402
import further  # noqa: E402
import golden  # noqa: E402
import nearness  # noqa: E402
import optimizers  # noqa: E402
import page  # noqa: E402
import schedulers  # noqa: E402
import schedules  # noqa: E402
from torch.testing._internal.common_modules import module_db  # noqa: E402

# What a part of the run checks, as columns of its table.
PARTS = {
    "modules": ["state", "text", "output", "gradients", "copies", "first values"],
    "optimizers": optimizers.COLUMNS,
    "schedulers": schedulers.COLUMNS,
    "autocast": autocast.COLUMNS,
    "files": files.COLUMNS,
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
        module, names_of = {
            "schedulers": (schedulers, list(schedules.ENTRIES)),
            "autocast": (autocast, autocast.entries()),
            "files": (files, files.ENTRIES),
        }[part]
        for name in names_of:
            yield name, lambda name=name: module.judged(name)


def judged(part: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    """The rows of a part, printed as they come."""
    columns, rows = PARTS[part], []
    for name, judge in entries(part, options.dtype):
        if options.only and name not in options.only and name.removeprefix("nn.").split()[0] not in options.only:
            continue
        if not rows:
            heads = "  ".join(f"{column[:5]:>5}" for column in columns)
            print(f"{part.removesuffix('s'):<34} {'samples':>7}  {heads}  {'s':>6}")
        began = time.perf_counter()
        row = judge()
        row["seconds"] = time.perf_counter() - began
        rows.append(row)
        print(line(row, columns, options.verbose), flush=True)
    wrong = sum(bool(row["failures"]) for row in rows)
    if rows:
        samples = sum(row["samples"] for row in rows)
        told = ""
        for how, said in (("by_truth", "by their distance to float64"), ("by_draws", "over many draws")):
            found = sum((collections.Counter(row.get(how, {})) for row in rows), collections.Counter())
            counts = ", ".join(f"{count} of {name}" for name, count in found.items())
            told += f"; {said} were judged {counts}" if counts else ""
        print(f"{len(rows) - wrong} of {len(rows)} {part} are whole, over {samples} samples{told}")
    return rows


def kept(path: Path, parts: dict[str, list[dict[str, Any]]]) -> dict[str, list[dict[str, Any]]]:
    """The table of all parts, of which those of this run are new."""
    known = json.loads(path.read_text()).get("parts", {}) if path.exists() else {}
    known = {part: parts.get(part, known.get(part)) for part in PARTS if part in parts or part in known}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"parts": known}, indent=1) + "\n")
    return known


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--part", type=names, default=list(PARTS), help=f"of {', '.join(PARTS)}")
    arguments.add_argument("--only", type=names, default=[], help="entries of these names, with or without `nn.`")
    arguments.add_argument("--dtype", type=names, default=list(nearness.DTYPES), help="only these dtypes")
    arguments.add_argument("--verbose", action="store_true", help="every failure, not only the first two")
    arguments.add_argument("--json", type=Path, help="keep the table of whole parts here")
    arguments.add_argument("--write-docs", type=Path, help="write the section on training of this page")
    arguments.add_argument("--record", type=Path, help="write what PyTorch answers here, and compare nothing")
    options = arguments.parse_args()
    warnings.simplefilter("ignore")
    if options.record:
        golden.record(options.record)
        return
    parts = {part: judged(part, options) for part in PARTS if part in options.part}
    rows = [row for found in parts.values() for row in found]
    # A run of some entries does not replace the whole table.
    if options.json and not options.only and set(options.dtype) == set(nearness.DTYPES):
        parts = kept(options.json, parts)
    if options.write_docs:
        page.write(options.write_docs, parts)
    sys.exit(any(row["failures"] for row in rows) or not rows)


if __name__ == "__main__":
    main()
