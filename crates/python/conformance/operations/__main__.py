"""Compares Plimsoll with PyTorch on all of PyTorch's own operator samples: `python operations --json FILE [OPTION...]`, with an
interpreter that has PyTorch and finds the package; `--help` lists the options.

Entries run in worker processes, so that one that ends its process or never ends costs only itself. Fails if an entry that is
there gives a wrong value, or ends its process."""

from __future__ import annotations

import argparse
import gzip
import json
import queue
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import report
import self_check

HERE = Path(__file__).resolve().parent
MOST_GOLDEN_BYTES = 1_500_000


class Worker:
    """A process that judges one entry at a time."""

    def __init__(self, options: dict[str, Any], environment: dict[str, str] | None = None) -> None:
        self.errors = tempfile.TemporaryFile("w+", errors="replace")
        command = [sys.executable, str(HERE / "worker.py"), json.dumps(options)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": self.errors}
        self.process = subprocess.Popen(command, **pipes, text=True, env=environment)
        first = self.process.stdout.readline()
        if not first:
            raise SystemExit(f"a worker did not start: {self.last_words()}")
        self.names: list[str] = json.loads(first)

    def judge(self, number: int, seconds: float) -> dict[str, Any]:
        """The entry's row; `crashed` or `late` if the process ended, or was ended after so many seconds."""
        late = threading.Event()

        def end() -> None:
            late.set()
            self.process.kill()

        timer = threading.Timer(seconds, end)
        timer.start()
        try:
            self.process.stdin.write(f"{number}\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        finally:
            timer.cancel()
        if answer:
            return json.loads(answer)
        self.process.wait()
        status, reason = ("late", f"took more than {seconds:.0f} s") if late.is_set() else ("crashed", self.last_words())
        return {"name": self.names[number], "status": status, "reason": reason, "checks": {}, "failures": [], "seconds": 0.0}

    def ended(self) -> bool:
        return self.process.poll() is not None

    def last_words(self) -> str:
        self.errors.seek(0)
        lines = [line.strip() for line in self.errors.read().splitlines() if line.strip()]
        telling = ("panicked", "Fatal Python error", "Error")
        said = next((line for words in telling for line in lines if words in line), lines[-1] if lines else "")
        return f"the process ended with {self.process.returncode}: {said}"

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()


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
    first = Worker(given)
    todo: queue.SimpleQueue[int] = queue.SimpleQueue()
    numbers = chosen(first.names, options.only)
    for number in numbers:
        todo.put(number)
    rows: dict[int, dict[str, Any]] = {}

    def work(worker: Worker | None) -> None:
        while True:
            try:
                number = todo.get_nowait()
            except queue.Empty:
                break
            if worker is None or worker.ended():
                worker = Worker(given)
            rows[number] = worker.judge(number, options.seconds)
            print(report.line(rows[number], options.verbose), flush=True)
        if worker is not None:
            worker.close()

    threads = [threading.Thread(target=work, args=(first,))]
    threads += [threading.Thread(target=work, args=(None,)) for _ in range(min(options.workers, len(numbers)) - 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [rows[number] for number in numbers]


def check_the_checks() -> None:
    """Fails if a broken operation is taken for whole, or the other way round."""
    given = {"limit": 0, "dtype": [], "record": False}
    worker = Worker(given, self_check.environment())

    def judge(name: str, seconds: float) -> dict[str, Any]:
        nonlocal worker
        if worker.ended():
            worker = Worker(given, self_check.environment())
        row = worker.judge(worker.names.index(name), seconds)
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
