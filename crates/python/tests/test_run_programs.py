"""`plimsoll run` on programs that leak and on programs that do not, written for PyTorch (`watch/leaks`, `watch/clean`): of each leak
it names a line that makes it and who holds it; of clean ones it says nothing."""

import os
import pathlib
import re
import subprocess
import sys

import plimsoll
import pytest

HERE = pathlib.Path(__file__).parent / "watch"
PACKAGE = pathlib.Path(plimsoll.__file__).parent.parent
LEAKS = [
    "adversarial_inputs",
    "attribute_in_forward",
    "buffers",
    "cache_by_step",
    "class_attribute",
    "closure",
    "custom_function",
    "cycle",
    "detached_list",
    "hidden_state",
    "hooks_in_loop",
    "linked_list",
    "model_copies",
    "outputs_with_graph",
]
CLEAN = [
    "accumulation",
    "adam_with_numbers",
    "autocast",
    "averaged_model",
    "cache_that_fills",
    "cleared_each_epoch",
    "dqn",
    "epochs_with_validation",
    "gan",
    "lbfgs",
    "predictions_of_one_pass",
    "replay_deque",
    "transformer",
    "truncated_backpropagation",
]


def report(program):
    done = subprocess.run(
        [sys.executable, "-m", "plimsoll", "run", "--device-memory", "0", str(program)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": str(PACKAGE)},
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.mark.parametrize("name", LEAKS)
def test_a_leak_is_named(name):
    program = HERE / "leaks" / f"{name}.py"
    made = [at for at, line in enumerate(program.read_text().splitlines(), 1) if line.endswith("# made")]
    said = re.sub(r"\s+", " ", report(program).rpartition("finding")[2])
    assert re.search(r"\d+\. leak: ", said), said
    assert any(f"{name}.py:{line}" in said for line in made), said
    assert "Remedy: " in said


@pytest.mark.parametrize("name", CLEAN)
def test_nothing_is_said_of_a_clean_program(name):
    assert "No findings." in report(HERE / "clean" / f"{name}.py")
