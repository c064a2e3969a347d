"""Worker processes that answer one question at a time, so that one that ends its process or never ends costs only itself."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple


def with_absolute_paths(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment for a process in another folder: what Python imports from is where it was."""
    paths = environment.get("PYTHONPATH", "")
    absolute = os.pathsep.join(map(os.path.abspath, paths.split(os.pathsep)))
    return {**environment, "PYTHONPATH": absolute} if paths else {**environment}


class Ended(NamedTuple):
    """Instead of an answer: the process ended (`crashed`), or was ended because it took too long (`late`)."""

    status: str
    words: str


class Worker:
    """A process that says first, in a line of JSON, what it can be asked, and then answers numbers, each in a line of JSON."""

    def __init__(self, arguments: list[str], environment: dict[str, str] | None = None) -> None:
        self.errors = tempfile.TemporaryFile("w+", errors="replace")
        # What it writes into the current folder goes away with it.
        self.place = tempfile.TemporaryDirectory()
        environment = with_absolute_paths(os.environ if environment is None else environment)
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": self.errors}
        self.process = subprocess.Popen([sys.executable, *arguments], **pipes, text=True, env=environment, cwd=self.place.name)
        first = self.process.stdout.readline()
        if not first:
            self.process.wait()
            raise SystemExit(f"a worker did not start ({' '.join(arguments)}): {self.last_words()}")
        self.offers: list[Any] = json.loads(first)

    def ask(self, number: int, seconds: float) -> Any:
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
        return Ended("late", f"took more than {seconds:.0f} s") if late.is_set() else Ended("crashed", self.last_words())

    def ended(self) -> bool:
        return self.process.poll() is not None

    def last_words(self) -> str:
        """How it ended, and the line of its errors that tells most, the last of its kind."""
        self.errors.seek(0)
        lines = [line.strip() for line in self.errors.read().splitlines() if line.strip()]
        telling = ("panicked", "Fatal Python error", "Error")
        said = next((line for words in telling for line in reversed(lines) if words in line), lines[-1] if lines else "")
        return f"the process ended with {self.process.returncode}: {said}"

    def close(self) -> None:
        self.process.stdin.close()
        try:
            self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.place.cleanup()


def ask_all(first: Worker, make: Callable[[], Worker], numbers: list[int], count: int, ask: Callable[[Worker, int], None]) -> None:
    """Asks every number once, in `count` processes, of which `first` is there already; those that ended are made anew."""
    todo: queue.SimpleQueue[int] = queue.SimpleQueue()
    for number in numbers:
        todo.put(number)

    def work(worker: Worker | None) -> None:
        while True:
            try:
                number = todo.get_nowait()
            except queue.Empty:
                break
            if worker is None or worker.ended():
                worker = make()
            ask(worker, number)
        if worker is not None:
            worker.close()

    others = max(min(count, len(numbers)) - 1, 0)
    threads = [threading.Thread(target=work, args=(worker,)) for worker in [first] + [None] * others]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
