"""What a run says: a line a program, a summary, and the section of the page in the documentation."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import judge
from listed import COMMITS
from table_cell import escaped

Row = dict[str, Any]
VERDICTS = ["equal", "rounding", "apart", "failed", "not compared"]
RUNS = ["first", "second", *judge.OLDER, "here"]
FIGURES = ["ten", "fifty", "spread", "older"]


def line(row: Row, seconds: float, verbose: bool) -> str:
    figures = ", ".join(f"{name} {figure(row, name)}" for name in FIGURES if figure(row, name))
    text = f"{row['verdict']:13}{row['title']} [{seconds:.0f} s] {figures} {row['reason']}"
    if verbose:
        for name in RUNS:
            told = row.get(name)
            text += f"\n{name}: {told['seconds']:.1f} s, losses {told['losses']}\n{told.get('trace', '')}" if told else ""
    return text


def figure(row: Row, name: str) -> str:
    """A difference, as it is told; empty if it was not taken."""
    value = row.get(name)
    return f"{value:.1e}" if isinstance(value, float) else ""


def summary(rows: list[Row]) -> str:
    found = Counter(row["verdict"] for row in rows)
    good = {row["repository"] for row in rows if row["verdict"] == "equal"}
    told = ", ".join(f"{found[verdict]} {verdict}" for verdict in VERDICTS if found[verdict])
    return f"{len(rows)} programs: {told}; equal ones are from {len(good)} repositories"


def cell(text: str) -> str:
    # Files by their names, wherever they lie on this machine.
    text = re.sub(r"(?<![\w.:/])/(?:[\w.+-]+/)+", "", text)
    text = text if len(text) <= 200 else text[:197] + "..."
    return escaped(text)


def whole(rows: list[Row]) -> str:
    found = Counter(row["verdict"] for row in rows)
    good = {row["repository"] for row in rows if row["verdict"] == "equal"}
    near = {row["repository"] for row in rows if row["verdict"] in ("equal", "rounding")}
    lines = [HEADING, "", *PREFACE, "", "| verdict | programs |", "| --- | ---: |"]
    lines += [f"| {verdict} | {found[verdict]} |" for verdict in VERDICTS if found[verdict]]
    lines += [f"| all | {len(rows)} |", ""]
    lines += [f"Equal ones are from {len(good)} repositories, with those that rounding takes apart {len(near)}.", ""]
    lines += ["| program | what | first ten | fifty | PyTorch's threads | PyTorch on older processors | verdict |"]
    lines += ["| --- | --- | ---: | ---: | ---: | ---: | --- |"]
    for row in sorted(rows, key=lambda row: VERDICTS.index(row["verdict"])):
        name = f"{row['repository']}, {cell(row['path'])}" + (f", `{row['variant']}`" if row["variant"] else "")
        verdict = row["verdict"] + (f": {cell(row['reason'])}" if row["reason"] else "")
        figures = " | ".join(figure(row, name) for name in FIGURES)
        lines.append(f"| {name} | {row['what']} | {figures} | {verdict} |")
    lines += ["", "Repositories, at these commits: " + ", ".join(f"{name} `{commit[:10]}`" for name, commit in COMMITS.items()) + "."]
    return "\n".join(lines)


HEADING = "# Other people's programs"
PREFACE = [
    "Written by `cargo xtask conformance programs FOLDER --write-docs`; do not edit. The folder has a clone of each repository, as",
    "`owner+name`; nothing of them is kept here. Programs run as their authors wrote them (each file's id in git is checked), on made-up",
    "data and with arguments that choose a CPU and small sizes (`crates/python/conformance/programs/listed.py`). What they import",
    "besides PyTorch and NumPy is stood in for: images of made-up classes for torchvision, a pole and a pendulum for gym, nothing for",
    "plots.",
    "",
    "Each runs on PyTorch with one thread, which writes down every random draw (first values, orders of samples, dropout, actions), then",
    "on PyTorch with two threads and on Plimsoll with two, which get the same draws: each calls its own function, whose name, shape and",
    "dtype must be the recorded ones, and the values are replaced. Dropout multiplies by the recorded mask. Compared is every value that",
    f"the program calls `backward` on, for {judge.JUDGED} steps (a step is as many passes as the program makes for one batch). The figures are the",
    f"largest relative differences to PyTorch with one thread. After {judge.RUN} steps a program is ended: what it does after an epoch is mostly not",
    "reached. `word_language_model` would save a whole module there, which Plimsoll's files do not hold; it also runs without the dropout",
    "between recurrent layers, which cannot be recorded from outside.",
    "",
    f"**Equal** is a program whose losses are within {judge.NEAR:.0e} for ten steps, and for fifty within twice the difference between",
    f"PyTorch's own runs with one and two threads, or {judge.FLOOR:.0e} where that is less: float32 has seven digits. Small programs give the",
    "same bits with any number of threads, which says nothing of how far the last bit takes them. Those that are not within that bound",
    "are compared with PyTorch itself as on older processors, without AVX-512 and without AVX: **rounding** are those within 1e-4 for ten",
    "steps and within twice that difference for fifty. **Apart** are those that differ by more, **failed** those that do not run here.",
    "How far a program goes from the last bit differs from run to run by much: the bound is the largest of few runs, so a verdict near it",
    "may be the other the next time. Where PyTorch's own runs are far apart, `equal` and `rounding` say little beyond the first ten steps.",
]


def write(path: Path, rows: list[Row]) -> None:
    """Puts the section in place of the one that is there; what stands before and after it is other runs'."""
    text = path.read_text() if path.exists() else ""
    before, _, rest = text.partition(f"\n{HEADING}\n")
    following = rest.find("\n# ")
    after = rest[following:] if following >= 0 else ""
    path.write_text(before.rstrip("\n") + "\n\n" + whole(rows).rstrip("\n") + "\n" + after)
