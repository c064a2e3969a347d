"""Runs tests of one file, one at a time: `python worker.py FILE FOLDER`. Writes a line with the tests, then reads a test's number
from a line and writes its row. With `--pytorch`, `torch` is PyTorch itself, under the same stand-ins."""

from __future__ import annotations

import importlib
import inspect
import json
import os
import sys
import time
import traceback
import unittest
import warnings
from pathlib import Path
from typing import Any

import counted


def load(folder: Path, name: str, pytorch: bool) -> list[dict[str, Any]]:
    """Every test of the file, with its class and whether it counts."""
    if not pytorch:
        from plimsoll import _plimsoll
        from plimsoll.run import resolve_torch

        resolve_torch()
        # Objects print by PyTorch's name, as they do under `plimsoll run`.
        _plimsoll._print_as_torch(True)
        # Programs that tests start find `children/sitecustomize.py`, which does the same there.
        paths = [str(Path(__file__).resolve().parent / "children"), os.environ.get("PYTHONPATH", "")]
        os.environ["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
    import tolerant
    from stand_in import modules

    modules.install()
    sys.meta_path.insert(0, tolerant.Files(folder))
    module = importlib.import_module(name)
    sources = counted.Sources()
    tests = []
    for owner, made in vars(module).items():
        if not (inspect.isclass(made) and issubclass(made, unittest.TestCase)) or made is vars(modules)["TestCase"]:
            continue
        generic = owner.removesuffix("CPU")
        path = inspect.getfile(made)
        for variant in unittest.defaultTestLoader.getTestCaseNames(made):
            function = getattr(made, variant)
            test = getattr(function, "generic", variant)
            nodes = sources.test(path, generic, test)
            why = counted.why_not(owner, test, nodes, getattr(function, "arguments", {}))
            tests.append({"class": owner, "test": test, "variant": variant, "not counted": why, "made": made})
    return tests


class Result(unittest.TestResult):
    """Keeps the first error of a test."""

    def __init__(self) -> None:
        super().__init__()
        self.status = "passed"
        self.words = ""
        self.trace = ""

    def _fail(self, error: Any) -> None:
        if self.status == "failed":
            return
        kind, value, trace = error
        first = next((line for line in str(value).splitlines() if line.strip()), "")
        self.status = "failed"
        self.words = f"{kind.__name__}: {first}" if first else kind.__name__
        self.trace = "".join(traceback.format_exception(kind, value, trace))[-6000:]

    def addError(self, test: Any, err: Any) -> None:
        self._fail(err)

    def addFailure(self, test: Any, err: Any) -> None:
        self._fail(err)

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:
        if err is not None:
            self._fail(err)

    def addSkip(self, test: Any, reason: str) -> None:
        self.status, self.words = "skipped", reason

    def addExpectedFailure(self, test: Any, err: Any) -> None:
        """Fails too: what is absent here would fail as expected, for another reason."""
        self._fail(err)

    def addUnexpectedSuccess(self, test: Any) -> None:
        self.status, self.words = "failed", "passes, and is marked as one that fails"


def run(test: dict[str, Any]) -> dict[str, Any]:
    import torch

    result = Result()
    begun = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        test["made"](test["variant"]).run(result)
    # What a test that failed half way may have left behind. Some put new dictionaries in the place of these.
    for name, hooks in vars(sys.modules[torch.nn.Module.__call__.__module__]).items():
        if name.startswith("_global") and isinstance(hooks, dict):
            hooks.clear()
    torch.set_grad_enabled(True)
    torch.autograd.set_detect_anomaly(False)
    return {"status": result.status, "words": result.words, "trace": result.trace, "seconds": time.perf_counter() - begun}


def main() -> None:
    # Tests print; the rows go out by a copy of standard output that they do not know.
    rows = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    name, folder, *options = sys.argv[1:]
    tests = load(Path(folder).resolve(), name, "--pytorch" in options)
    keys = ("class", "test", "variant", "not counted")
    print(json.dumps([{key: test[key] for key in keys} for test in tests]), file=rows, flush=True)
    for line in sys.stdin:
        print(json.dumps(run(tests[int(line)])), file=rows, flush=True)


if __name__ == "__main__":
    main()
