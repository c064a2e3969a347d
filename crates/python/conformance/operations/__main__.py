"""Compares Plimsoll with PyTorch on all of PyTorch's own operator samples: `python operations --json FILE [OPTION...]`, with an
interpreter that has PyTorch and finds the package; `--help` lists the options.

Entries run in worker processes, so that one that ends its process or never ends costs only itself. Fails if an entry that is
there gives a wrong value, or ends its process."""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))

import report  # noqa: E402
import self_check  # noqa: E402
from processes import Ended, Worker, ask_all  # noqa: E402

MOST_GOLDEN_BYTES = 1_500_000


def started(options: dict[str, Any], environment: dict[str, str] | None = None) -> Worker:
    """A process that judges one entry at a time; it offers the entries' names."""
    return Worker([str(HERE / "worker.py"), json.dumps(options)], environment)


def judged(worker: Worker, number: int, seconds: float) -> dict[str, Any]:
    """The entry's row."""
    row = worker.ask(number, seconds)
    if not isinstance(row, Ended):
        return row
    name, nothing = worker.offers[number], {"checks": {}, "failures": [], "seconds": 0.0}
    return {"name": name, "status": row.status, "reason": row.words, **nothing}


def chosen(names: list[str], only: list[str]) -> list[int]:
    """The entries of these names, or else those that begin with them."""
    if not only:
        return list(range(len(names)))
    exact = {wanted for wanted in only if any(name.split()[0] == wanted or name == wanted for name in names)}

    def matches(name: str) -> bool:
        return any(wanted in (name, name.split()[0]) if wanted in exact else name.startswith(wanted) for wanted in only)

    return [number for number, name in enumerate(names) if matches(name)]


def judge_all(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Rows in the database's order."""
    given = {"limit": options.limit, "dtype": options.dtype, "record": options.record is not None}
    first = started(given)
    numbers = chosen(first.offers, options.only)
    rows: dict[int, dict[str, Any]] = {}

    def judge(worker: Worker, number: int) -> None:
        rows[number] = judged(worker, number, options.seconds)
        print(report.line(rows[number], options.verbose), flush=True)

    ask_all(first, lambda: started(given), numbers, options.workers, judge)
    return [rows[number] for number in numbers]


def check_the_checks() -> None:
    """Fails if a broken operation is taken for whole, or the other way round."""
    given = {"limit": 0, "dtype": [], "record": False}
    worker = started(given, self_check.environment())

    def judge(name: str, seconds: float) -> dict[str, Any]:
        nonlocal worker
        if worker.ended():
            worker = started(given, self_check.environment())
        row = judged(worker, worker.offers.index(name), seconds)
        print(report.line(row, verbose=False), flush=True)
        return row

    found = self_check.mistakes(judge)
    worker.close()
    print("\n".join(found) or "the checks see what they must see")
    sys.exit(bool(found))


def write_golden(path: Path, recorded: list[dict[str, Any]]) -> None:
    """The cases that CI replays; the largest are left out until the rest is small enough."""
    lines = [json.dumps(case, separators=(",", ":")) for case in recorded]
    while len(data := gzip.compress(f"[{','.join(lines)}]".encode(), mtime=0)) > MOST_GOLDEN_BYTES:
        limit = sorted(map(len, lines))[-len(lines) // 20]
        recorded, lines = zip(*((case, line) for case, line in zip(recorded, lines, strict=True) if len(line) < limit), strict=True)
    path.write_bytes(data)
    entries = len({case["entry"] for case in recorded})
    print(f"{len(recorded)} cases of {entries} entries in {path}: {len(data)} bytes")


def names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--only", type=names, default=[], help="entries of these names, or that begin with them")
    arguments.add_argument("--dtype", type=names, default=[], help="only samples of these dtypes")
    arguments.add_argument("--limit", type=int, default=0, help="so many samples of each dtype")
    arguments.add_argument("--verbose", action="store_true", help="every failure, not only the first")
    arguments.add_argument("--seconds", type=float, default=300.0, help="for one entry")
    arguments.add_argument("--workers", type=int, default=2)
    arguments.add_argument("--json", type=Path, required=True)
    arguments.add_argument("--write-docs", type=Path)
    arguments.add_argument("--record", type=Path, help="write down samples of whole entries, with PyTorch's answers")
    arguments.add_argument("--self-check", action="store_true", help="whether broken operations are seen")
    options = arguments.parse_args()
    if options.self_check:
        check_the_checks()
    some = bool(options.only or options.dtype or options.limit)
    if some and (options.write_docs or options.record):
        raise SystemExit("--write-docs and --record need a whole run: without --only, --dtype and --limit")
    rows = judge_all(options)
    print(report.summary(rows))
    recorded = [case for row in rows for case in row.pop("golden", [])]
    if options.record:
        write_golden(options.record, recorded)
    # A run of some entries does not replace the whole table.
    table = options.json.with_stem(f"some-{options.json.stem}") if some else options.json
    table.parent.mkdir(parents=True, exist_ok=True)
    table.write_text(json.dumps({"entries": rows}, indent=1) + "\n")
    print(f"every failure is in {table}")
    if options.write_docs:
        training = report.training(options.write_docs)
        options.write_docs.write_text(report.page(rows) + training)
    sys.exit(any(row["status"] in ("wrong", "crashed") for row in rows))


if __name__ == "__main__":
    main()
