"""`plimsoll.LeakWatch` on the programs of `watch/leaks` and `watch/clean`, which were written for PyTorch: each leak is named with line,
kind and holder, no clean program has a verdict. What cannot run here is listed with the reason."""

import json
import os
import pathlib
import re
import subprocess
import sys

import plimsoll
import pytest

HERE = pathlib.Path(__file__).parent
PACKAGE = pathlib.Path(plimsoll.__file__).parent.parent
# They need what is not there.
NOT_HERE = {
    "marked_steps": "marks its steps for the watch of PyTorch's programs",
    "sparse_embedding": "there are no sparse tensors",
    "adjacencies": "there are no sparse tensors",
    "compressed_rows": "there are no sparse tensors",
    "jacobians": "there is no torch.func.jacrev",
    "ensemble_by_vmap": "there is no torch.func.vmap",
}


def programs(folder):
    found = (program for program in sorted((HERE / "watch" / folder).glob("*.py")) if program.stem not in NOT_HERE)
    for program in found:
        yield pytest.param(program, id=program.stem)


LEAKS, CLEAN = list(programs("leaks")), list(programs("clean"))


@pytest.fixture(scope="module")
def judged():
    """The reports of all programs, by name."""
    command = [sys.executable, str(HERE / "leak_programs.py"), *(str(program.values[0]) for program in (*LEAKS, *CLEAN))]
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=1200, env=environment)
    assert done.returncode == 0, done.stderr
    return {pathlib.Path(ran["program"]): ran for ran in map(json.loads, done.stdout.splitlines())}


def expected(program):
    text = program.read_text()
    kinds = re.search(r"^# kind: (.*)$", text, re.M)[1].split(" | ")
    holder = re.search(r"^# holder: (.*)$", text, re.M)[1]
    lines = [f"{program.name}:{at}" for at, line in enumerate(text.splitlines(), 1) if line.endswith("# made")]
    return lines, kinds, holder


@pytest.mark.parametrize("program", LEAKS)
def test_a_leak_is_named(program, judged):
    ran = judged[program]
    assert ran["status"] == 0, ran["errors"]
    lines, kinds, holder = expected(program)
    verdicts = [finding for finding in ran["report"]["findings"] if finding["verdict"]]
    assert verdicts, ran["report"]
    found = [finding for finding in verdicts if finding["line"] in lines and finding["kind"] in kinds]
    assert any(holder in finding["held_by"] for finding in found), verdicts
    assert ran["report"]["trouble"] is None


@pytest.mark.parametrize("program", CLEAN)
def test_a_clean_program_has_no_verdict(program, judged):
    ran = judged[program]
    assert ran["status"] == 0, ran["errors"]
    assert [finding for finding in ran["report"]["findings"] if finding["verdict"]] == []
    assert ran["report"]["trouble"] is None
