"""Compares Plimsoll's modules with PyTorch's, on all inputs of PyTorch's own module database and on modules it leaves out:
`python training [OPTION...]`, with an interpreter that has PyTorch and finds the package; `--help` lists the options.

Fails if a module that is there gives a wrong value, gradient, state, text or copy, or if one is missing."""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
# Translating names and tensors is shared with the operations.
sys.path[:0] = [str(HERE), str(HERE.parent / "operations")]

import entry  # noqa: E402
import further  # noqa: E402
from torch.testing._internal.common_modules import module_db  # noqa: E402

COLUMNS = ["state", "text", "output", "gradients", "copies", "first values"]


def line(row: dict[str, Any], verbose: bool) -> str:
    """One row of the table, with what is wrong below it."""
    counts = "  ".join(f"{row['passed'].get(name, 0):>5}" for name in COLUMNS)
    verdict = "WRONG" if row["failures"] else "whole"
    text = f"{row['name']:<34} {row['samples']:>7}  {counts}  {row['seconds']:>6.1f}  {verdict}"
    shown = row["failures"] if verbose else row["failures"][:2]
    hidden = len(row["failures"]) - len(shown)
    text += "".join(f"\n    {failure}" for failure in shown)
    return text + (f"\n    and {hidden} more" if hidden > 0 else "")


def names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--only", type=names, default=[], help="entries of these names, with or without `nn.`")
    arguments.add_argument("--dtype", type=names, default=list(entry.DTYPES), help="only these dtypes")
    arguments.add_argument("--verbose", action="store_true", help="every failure, not only the first two")
    arguments.add_argument("--json", type=Path, help="write the whole table here")
    options = arguments.parse_args()
    warnings.simplefilter("ignore")
    heads = "  ".join(f"{name[:5]:>5}" for name in COLUMNS)
    print(f"{'module':<34} {'samples':>7}  {heads}  {'s':>6}")
    rows = []
    for info in [*module_db, *further.ENTRIES]:
        if options.only and info.name not in options.only and info.name.removeprefix("nn.") not in options.only:
            continue
        began = time.perf_counter()
        row = entry.judged(info, options.dtype)
        row["seconds"] = time.perf_counter() - began
        rows.append(row)
        print(line(row, options.verbose), flush=True)
    wrong = [row["name"] for row in rows if row["failures"]]
    samples = sum(row["samples"] for row in rows)
    print(f"{len(rows) - len(wrong)} of {len(rows)} modules are whole, over {samples} samples")
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps({"entries": rows}, indent=1) + "\n")
    sys.exit(bool(wrong) or not rows)


if __name__ == "__main__":
    main()
