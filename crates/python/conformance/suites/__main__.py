"""Runs PyTorch's own test files on Plimsoll: `python suites FOLDER --json FILE [OPTION...]`; `--help` lists the options. The folder
is PyTorch's `test`, fetched by the caller: nothing of it is kept here.

Tests run in worker processes, so that one that ends its process or never ends costs only itself. Fails if a test ends its process
or takes too long."""

from __future__ import annotations

import argparse
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import page

HERE = Path(__file__).resolve().parent
FILES = ["test_autograd", "test_indexing", "test_view_ops"]


class Worker:
    """A process that runs tests of one file, one at a time."""

    def __init__(self, name: str, options: argparse.Namespace) -> None:
        self.errors = tempfile.TemporaryFile("w+", errors="replace")
        self.place = tempfile.TemporaryDirectory()
        command = [sys.executable, str(HERE / "worker.py"), name, str(options.folder), *(["--pytorch"] if options.pytorch else [])]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": self.errors}
        # Tests that write into the current folder write into one that goes away.
        self.process = subprocess.Popen(command, **pipes, text=True, cwd=self.place.name)
        first = self.process.stdout.readline()
        if not first:
            self.process.wait()
            raise SystemExit(f"{name}: a worker did not start: {self.last_words()}")
        self.tests: list[dict[str, Any]] = json.loads(first)

    def run(self, number: int, seconds: float) -> dict[str, Any]:
        """The test's row; `crashed` or `late` if the process ended, or was ended after so many seconds."""
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
            return self.tests[number] | json.loads(answer)
        self.process.wait()
        status, words = ("late", f"took more than {seconds:.0f} s") if late.is_set() else ("crashed", self.last_words())
        return self.tests[number] | {"status": status, "words": words, "trace": "", "seconds": 0.0}

    def last_words(self) -> str:
        self.errors.seek(0)
        lines = [line.strip() for line in self.errors.read().splitlines() if line.strip()]
        telling = ("panicked", "Fatal Python error", "Error")
        said = next((line for words in telling for line in reversed(lines) if words in line), lines[-1] if lines else "")
        return f"the process ended with {self.process.returncode}: {said}"

    def ended(self) -> bool:
        return self.process.poll() is not None

    def close(self) -> None:
        self.process.stdin.close()
        try:
            self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.place.cleanup()


def chosen(test: dict[str, Any], only: list[str]) -> bool:
    return not only or any(wanted in (test["variant"], test["test"], test["class"]) for wanted in only)


def run_file(name: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Rows in the file's order."""
    first = Worker(name, options)
    rows: dict[int, dict[str, Any]] = {}
    todo: queue.SimpleQueue[int] = queue.SimpleQueue()
    numbers = [number for number, test in enumerate(first.tests) if chosen(test, options.only)]
    for number in numbers:
        if first.tests[number]["not counted"]:
            rows[number] = first.tests[number] | {"status": "not counted", "words": first.tests[number]["not counted"], "seconds": 0.0}
        else:
            todo.put(number)

    def work(worker: Worker | None) -> None:
        while True:
            try:
                number = todo.get_nowait()
            except queue.Empty:
                break
            if worker is None or worker.ended():
                worker = Worker(name, options)
            rows[number] = page.judged(worker.run(number, options.seconds))
            print(page.line(rows[number], options.verbose), flush=True)
        if worker is not None:
            worker.close()

    threads = [threading.Thread(target=work, args=(first,))]
    threads += [threading.Thread(target=work, args=(None,)) for _ in range(min(options.workers, todo.qsize()) - 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [rows[number] for number in numbers]


def names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("folder", type=Path, help="PyTorch's folder `test`")
    arguments.add_argument("--file", type=names, default=FILES, help="these files, without `.py`")
    arguments.add_argument("--only", type=names, default=[], help="tests, variants or classes of these names")
    arguments.add_argument("--verbose", action="store_true", help="with tracebacks")
    arguments.add_argument("--seconds", type=float, default=120.0, help="for one test")
    arguments.add_argument("--workers", type=int, default=2)
    arguments.add_argument("--pytorch", action="store_true", help="run them on PyTorch itself, to check the harness")
    arguments.add_argument("--json", type=Path, required=True)
    arguments.add_argument("--write-docs", type=Path)
    options = arguments.parse_args()
    if missing := [name for name in options.file if not (options.folder / f"{name}.py").is_file()]:
        raise SystemExit(f"{options.folder} has no {', '.join(missing)}: give PyTorch's folder `test`")
    some = bool(options.only or options.pytorch or options.file != FILES)
    if some and options.write_docs:
        raise SystemExit("--write-docs needs a whole run: without --file, --only and --pytorch")
    options.folder = options.folder.resolve()
    os.environ.setdefault("PYTHONFAULTHANDLER", "1")
    if paths := os.environ.get("PYTHONPATH"):
        # Workers run in folders of their own.
        os.environ["PYTHONPATH"] = os.pathsep.join(os.path.abspath(path) for path in paths.split(os.pathsep))
    rows = {name: run_file(name, options) for name in options.file}
    print(page.summary(rows))
    # A run of some tests does not replace the whole table.
    table = options.json.with_stem(f"some-{options.json.stem}") if some else options.json
    table.parent.mkdir(parents=True, exist_ok=True)
    table.write_text(json.dumps(rows, indent=1) + "\n")
    print(f"every failure is in {table}")
    if options.write_docs:
        page.write(options.write_docs, rows)
    sys.exit(any(row["status"] in ("crashed", "late") for listed in rows.values() for row in listed))


if __name__ == "__main__":
    main()
