"""What a run says: a line an entry, a summary, and the page in the documentation."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from table_cell import escaped

Row = dict[str, Any]
STATUSES = ["whole", "partial", "wrong", "crashed", "late", "absent"]


def line(row: Row, verbose: bool) -> str:
    """An entry in one line; with `verbose` a line for every failure below it."""
    if row["status"] == "absent":
        return f"absent   {row['name']}"
    checks = ", ".join(f"{name} {right}/{count}" for name, (right, count) in row["checks"].items())
    text = f"{row['status']:8} {row['name']} [{row['seconds']:.1f} s] {checks}"
    if not row["failures"]:
        return f"{text}\n         {row['reason']}" if row["reason"] else text
    shown = row["failures"] if verbose else row["failures"][:1]
    return "\n".join([text, *(f"         {failure_line(failure)}" for failure in shown)])


def failure_line(failure: dict[str, Any]) -> str:
    return f"{failure['check']}, {failure['dtype']}, sample {failure['number']}: {failure['words']}\n           {failure['sample']}"


def summary(rows: list[Row]) -> str:
    counts = Counter(row["status"] for row in rows)
    said = ", ".join(f"{counts[status]} {status}" for status in STATUSES if counts[status])
    bad = [row["name"] for row in rows if row["status"] in ("wrong", "crashed", "late")]
    return f"{len(rows)} entries: {said}" + (f"\nlook at: {', '.join(bad)}" if bad else "")


def failing(row: Row) -> str:
    """The check that an entry fails first, and how."""
    return f"{row['failures'][0]['check']}: {row['failures'][0]['kind']}" if row["failures"] else row["status"]


def beside(row: Row) -> str:
    """The other checks that it fails."""
    others = sorted({failure["check"] for failure in row["failures"]} - {row["failures"][0]["check"]}) if row["failures"] else []
    return f"; also {', '.join(others)}" if others else ""


def reason(row: Row) -> str:
    """The first failure, in few words."""
    first = row["failures"][0] if row["failures"] else None
    words = f"{row['reason']} [{first['dtype']}: {first['sample']}]" if first else row["reason"]
    return escaped((words if len(words) <= 170 else words[:167] + "...") + beside(row))


def table(rows: list[Row]) -> list[str]:
    """Entries by what fails, the most frequent first."""
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        groups[failing(row)].append(row)
    lines = []
    for what, listed in sorted(groups.items(), key=lambda group: -len(group[1])):
        lines += [f"### {what} ({len(listed)})", "| entry | first failure |", "| --- | --- |"]
        lines += [f"| `{row['name']}` | {reason(row)} |" for row in listed]
        lines.append("")
    return lines


def page(rows: list[Row]) -> str:
    """`docs/conformance.md`."""
    counts = Counter(row["status"] for row in rows)
    lines = ["# Operations beside PyTorch's", "", *PREFACE, ""]
    lines += ["| status | entries |", "| --- | ---: |"]
    lines += [f"| {status} | {counts[status]} |" for status in STATUSES if counts[status]]
    lines += [f"| all | {len(rows)} |", ""]
    for status, title in TITLES.items():
        listed = [row for row in rows if row["status"] == status]
        if listed:
            lines += [f"## {title}", "", *table(listed)]
    absent: dict[str, list[str]] = defaultdict(list)
    for row in rows:
        if row["status"] == "absent":
            absent[row["name"].split()[0].rpartition(".")[0] or "the module itself"].append(row["name"])
    if absent:
        lines += ["## Absent", "By where PyTorch has them.", ""]
        lines += [f"- **{place}** ({len(names)}): {', '.join(f'`{name}`' for name in names)}" for place, names in absent.items()]
        lines.append("")
    aliases = list(dict.fromkeys(f"`{alias}`" for row in rows for alias in row.get("missing aliases", [])))
    if aliases:
        lines += ["## Other names", "Second names of entries that are here, which are missing and do not count: " + ", ".join(aliases) + ".", ""]
    whole = [f"`{row['name']}`" for row in rows if row["status"] == "whole"]
    lines += ["## Whole", ", ".join(whole) or "None.", ""]
    return "\n".join(lines)


# What follows it in the page is written by the comparison of training.
TRAINING = "# Training beside PyTorch's"


def training(path: Path) -> str:
    """The section on training as it stands in the page, which is another run's."""
    _, found, section = path.read_text().partition(f"\n{TRAINING}\n") if path.exists() else ("", "", "")
    return found + section


PREFACE = [
    "Written by `cargo xtask conformance operations --write-docs`; do not edit. It runs every entry of PyTorch's operator database",
    "(`op_db`, with PyTorch from PyPI) through the Python module, for every real dtype that both have on the CPU: values, dtype, shape,",
    "non-contiguous copies of each sample, methods and operators, in place and `out=`, first and second gradients in float64, and arguments",
    "that must be refused. Strides are compared for views and elementwise operations. Random entries are judged by their distribution.",
    "Where PyTorch contradicts itself (a strided `out=` filled with something else than its plain result, a gradient that its own",
    "`gradcheck` refutes), its plain result counts. Tolerances are those of PyTorch's own tests; for Bessel's functions they are 1e-5 in",
    "float64, where PyTorch's own values are off by up to 3e-7. Singular and eigenvectors, of which there are several right ones, are",
    "compared by what all have in common (values, products, orthonormality) within 1e-5, in float64 1e-9.",
    "",
    "An entry is **whole** if all of that agrees; **partial** if something is refused or missing here; **wrong** if a result is another",
    "than PyTorch's; **absent** if there is no such name here.",
]

TITLES = {
    "wrong": "Wrong",
    "crashed": "Ends the process",
    "late": "Takes too long",
    "partial": "Partial",
}
