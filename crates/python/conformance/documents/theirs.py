"""What PyTorch does with a script: each in a process of its own, a copy of one that has imported PyTorch."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import tempfile
import traceback
import warnings
from typing import Any

import no_card
import torch
from script import Script

# An error's words are everybody's own.
OWN_WORDS = re.compile(r"print\(.*\{e\}")
# What fake tensors raise where tensors of two devices meet; real ones raise a RuntimeError.
MEETING = "FakeTensorDeviceMismatchError"


def answer(script: Script) -> dict[str, Any]:
    """What the script raises on a CPU and on a card, at which line; deprecations; and what it prints if that is certain."""
    cpu = _apart(script.on_cpu(), script.name, no_card.calls_that_do_nothing, 0)
    found = {"cpu": cpu["raises"], "deprecated": cpu["deprecated"]}
    if script.says_cuda:
        fake = _apart(script.text, script.name, no_card.fake_card, 0)
        if fake["raises"] is not None and fake["raises"][0] == MEETING:
            found["cuda"] = ["RuntimeError", fake["raises"][1]]
        else:
            found["cuda"] = _apart(script.on_cpu(), script.name, no_card.card_in_use, 0)["raises"]
    elif cpu["prints"] and not OWN_WORDS.search(script.text):
        again = _apart(script.on_cpu(), script.name, no_card.calls_that_do_nothing, 1)
        if again["prints"] == cpu["prints"]:
            found["prints"] = cpu["prints"]
    return found


def _apart(text: str, name: str, surroundings: Any, seed: int) -> dict[str, Any]:
    """Runs a text in a copy of this process."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.environ["PRELUDE_SEED"] = str(seed)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            with tempfile.TemporaryDirectory() as folder, os.fdopen(write, "w") as file:
                os.chdir(folder)
                json.dump(_run(text, name, surroundings), file)
            status = 0
        finally:
            os._exit(status)
    os.close(write)
    with os.fdopen(read) as file:
        told = file.read()
    if os.waitpid(child, 0)[1] != 0:
        return {"raises": ["the process ended", None]}
    return json.loads(told)


def _run(text: str, name: str, surroundings: Any) -> dict[str, Any]:
    torch.set_num_threads(1)
    error, printed = None, io.StringIO()
    with warnings.catch_warnings(record=True) as warned, contextlib.redirect_stdout(printed):
        warnings.simplefilter("always")
        try:
            with surroundings():
                exec(compile(text, name, "exec"), {"__name__": "__main__", "__file__": name})  # noqa: S102
        except BaseException as caught:  # noqa: BLE001 - whatever it is, it is the answer
            error = caught
    words = {
        (warning.lineno, warning.category.__name__)
        for warning in warned
        if warning.filename == name and "deprecated" in str(warning.message)
    }
    return {"raises": raised(error, name), "deprecated": sorted(words), "prints": printed.getvalue()}


def raised(error: BaseException | None, name: str) -> list[Any] | None:
    """The class of what was raised, and the last line of the script on the way there."""
    if error is None:
        return None
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == name]
    return [type(error).__name__, lines[-1] if lines else None]
