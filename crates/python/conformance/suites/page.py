"""What a run says: a line a test, a summary, and the section of the page in the documentation."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from table_cell import escaped

Row = dict[str, Any]
STATUSES = ["passed", "failed", "crashed", "late", "not counted"]
# Skips that PyTorch's own run on a CPU has too.
ELSEWHERE = re.compile(r"cuda|gpu|accelerator|mps|xpu|only runs on|needs \d devices", re.IGNORECASE)


def judged(row: Row) -> Row:
    """A test that skips itself does not count if it is meant for another device or platform, else it has failed."""
    if row["status"] != "skipped":
        return row
    if ELSEWHERE.search(row["words"]):
        return row | {"status": "not counted", "words": "much memory" if "memory" in row["words"] else "CUDA"}
    return row | {"status": "failed", "words": f"skipped: {row['words']}"}


def line(row: Row, verbose: bool) -> str:
    text = f"{row['status']:11} {row['class']}.{row['variant']} [{row['seconds']:.1f} s] {row['words']}"
    return f"{text}\n{row['trace']}" if verbose and row.get("trace") else text


def tests(rows: list[Row]) -> list[Row]:
    """One row a test of several variants: passed if all that count have."""
    groups: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        groups[row["class"], row["test"]].append(row)
    made = []
    for variants in groups.values():
        counted = [row for row in variants if row["status"] != "not counted"]
        bad = next((row for row in counted if row["status"] != "passed"), None)
        first = bad or (counted or variants)[0]
        right = sum(row["status"] == "passed" for row in counted)
        made.append(first | {"passed": right, "counted": len(counted)})
    return made


def counts(rows: list[Row]) -> str:
    found = Counter(row["status"] for row in rows)
    return ", ".join(f"{found[status]} {status}" for status in STATUSES if found[status])


def summary(rows: dict[str, list[Row]]) -> str:
    lines = [f"{name}: {counts(listed)}; by test: {counts(tests(listed))}" for name, listed in rows.items()]
    bad = [row["variant"] for listed in rows.values() for row in listed if row["status"] in ("crashed", "late")]
    return "\n".join([*lines, *([f"look at: {', '.join(bad)}"] if bad else [])])


def cell(text: str) -> str:
    # Files by their names, wherever they lie on this machine.
    text = re.sub(r"(?<![\w.])/(?:[\w.+-]+/)+", "", text)
    text = text if len(text) <= 170 else text[:167] + "..."
    return escaped(text)


def title(row: Row) -> str:
    """A test's name, with its class where that is not the file's first."""
    return f"{row['class']}.{row['test']}"


def section(name: str, rows: list[Row]) -> list[str]:
    """One file: what failed and how, what does not count and why, what passed."""
    listed = tests(rows)
    bad = [row for row in listed if row["status"] in ("failed", "crashed", "late")]
    lines = [f"## `{name}.py`", ""]
    if bad:
        lines += ["| test | variants passed | first line of the error |", "| --- | ---: | --- |"]
        lines += [f"| `{title(row)}` | {row['passed']} of {row['counted']} | {cell(row['words'])} |" for row in bad]
        lines.append("")
    left: dict[str, list[str]] = defaultdict(list)
    for row in listed:
        if row["status"] == "not counted":
            left[row["words"]].append(title(row))
    if left:
        lines.append("Not counted:")
        lines.append("")
        lines += [f"- **{why}** ({len(those)}): {by_class(those)}" for why, those in left.items()]
        lines.append("")
    passed = [title(row) for row in listed if row["status"] == "passed"]
    return [*lines, f"Passed ({len(passed)}): {by_class(passed) or 'none'}", ""]


def by_class(titles: list[str]) -> str:
    """Names grouped by their classes."""
    groups: dict[str, list[str]] = defaultdict(list)
    for each in titles:
        owner, _, test = each.partition(".")
        groups[owner].append(f"`{test}`")
    return "; ".join(f"{owner}: {', '.join(listed)}" for owner, listed in groups.items())


def whole(rows: dict[str, list[Row]]) -> str:
    lines = [HEADING, "", *PREFACE, "", *figures(rows), ""]
    for name, listed in rows.items():
        lines += section(name, listed)
    return "\n".join(lines)


def figures(rows: dict[str, list[Row]]) -> list[str]:
    """A row a file."""
    lines = ["| file | tests that count | passed | failed | not counted | variants passed |"]
    lines.append("| --- | ---: | ---: | ---: | ---: | ---: |")
    for name, listed in rows.items():
        found = Counter(row["status"] for row in tests(listed))
        counted = sum(found.values()) - found["not counted"]
        each = Counter(row["status"] for row in listed)
        variants = f"{each['passed']} of {len(listed) - each['not counted']}"
        path = name.replace(".", "/")
        lines.append(f"| `{path}.py` | {counted} | {found['passed']} | {counted - found['passed']} | {found['not counted']} | {variants} |")
    return lines


HEADING = "# PyTorch's own test files"
PREFACE = [
    "Written by `cargo xtask conformance suites FOLDER --write-docs`; do not edit. The folder is PyTorch's `test`, of the release that the",
    "tests are from; nothing of it is kept here. The bodies of the tests run with `torch` resolved to Plimsoll. What they import from",
    "`torch.testing._internal` (test cases, variants by device, dtype and parameter, comparison) is written anew in",
    "`crates/python/conformance/suites/stand_in`; variants have PyTorch's names, and only those for a CPU are made. `gradcheck` runs",
    "without the batched gradients that PyTorch's own harness adds, which are vmap's. Each test runs in a process of a pool, within a time",
    "limit. `--pytorch` runs the same files on PyTorch itself, which tells failures of the harness from failures here.",
    "",
    "Not counted are forward-mode differentiation, vmap, sparse and complex tensors, TorchScript and CUDA: a rule that reads a test's name",
    "and source decides (`counted.py`). What else does not run has failed. A test of several variants passes if all that count do.",
]


FURTHER = "# PyTorch's further test files"
FURTHER_PREFACE = [
    "Written by `cargo xtask conformance suites FOLDER --further --write-docs`; do not edit. The same for files whose failures are too many",
    "to list here: most expect PyTorch's words in a message, or names of its inner parts, dtypes that are not here (unsigned, quantized,",
    "float8), SciPy or files of its tests. Not counted are, besides, tests that run every sample of a database, which the tables above",
    "compare, and tests that need much memory. `target/conformance/further-suites.json` has each with its traceback.",
]


def write(path: Path, rows: dict[str, list[Row]], further: bool) -> None:
    """Puts the section in place of the one that is there; what stands before and after it is other runs'."""
    text = path.read_text() if path.exists() else ""
    heading = FURTHER if further else HEADING
    made = "\n".join([FURTHER, "", *FURTHER_PREFACE, "", *figures(rows)]) if further else whole(rows)
    before, found, rest = text.partition(f"\n{heading}\n")
    if further and not found:
        # After the other files, before what follows them.
        at = text.find("\n# ", text.find(f"\n{HEADING}\n") + 1)
        before, rest = (text[:at], text[at:]) if at >= 0 else (text, "")
    following = rest.find("\n# ")
    after = rest[following:] if following >= 0 else ""
    path.write_text(before.rstrip("\n") + "\n\n" + made.rstrip("\n") + "\n" + after)
