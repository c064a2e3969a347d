"""The package and a program that uses it, under mypy's strict mode (`pyproject.toml` has its settings)."""

import pathlib
import re
import subprocess
import sys

import pytest

import plimsoll as pm
import plimsoll.nn.functional as F
from plimsoll.nn import _functional

pytest.importorskip("mypy", reason="there is no mypy here")

FOLDER = pathlib.Path(__file__).parent
PROGRAM = FOLDER / "typed_program.py"


@pytest.fixture(scope="module")
def mypy(tmp_path_factory):
    cache = tmp_path_factory.mktemp("mypy")

    def run(*arguments):
        command = [sys.executable, "-m", "mypy", "--config-file", "pyproject.toml", "--cache-dir", cache, *arguments]
        return subprocess.run(command, cwd=FOLDER.parents[2], capture_output=True, text=True, timeout=300)

    return run


def test_the_package(mypy):
    checked = mypy()
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert int(re.search(r"no issues found in (\d+) source files", checked.stdout).group(1)) > 200


def test_a_program(mypy, tmp_path):
    checked = mypy(PROGRAM)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    # Its types are known, not left open: what is wrong is seen.
    wrong = tmp_path / "wrong.py"
    text = PROGRAM.read_text()
    assert "self.x.size(0)" in text and "return total / count" in text
    wrong.write_text(text.replace("self.x.size(0)", "self.x.size()").replace("return total / count", "return model(loader)[0].shape"))
    seen = mypy(wrong).stdout
    assert 'got "Size", expected "int"' in seen, seen


def test_the_program_runs(tmp_path):
    program = subprocess.run([sys.executable, PROGRAM, "--steps", "2"], capture_output=True, text=True, timeout=120)
    assert program.returncode == 0, program.stderr
    assert 0 < float(program.stdout.splitlines()[-1]) < 1


def test_functions_have_one_type_each():
    """Checkers see of the generated functions those that none of the package's own takes the place of."""
    text = pathlib.Path(F.__file__).read_text()
    listed = set(re.findall(r"^    from \._functional import (\w+) as \1$", text, re.MULTILINE))
    assert listed == {name for name in _functional.__all__ if getattr(F, name) is getattr(pm._plimsoll, name)}
