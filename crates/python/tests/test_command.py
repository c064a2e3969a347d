"""The command that the package carries: the same as the executable, in streams, exit status and Ctrl-C."""

import json
import pathlib
import re
import signal
import subprocess
import sys
import time

import pytest

import plimsoll as pm

SCRIPT = [str(pathlib.Path(sys.executable).with_name("plimsoll"))]
MODULE = [sys.executable, "-m", "plimsoll"]


def run(*arguments, way=MODULE, **options):
    return subprocess.run([*way, *arguments], capture_output=True, text=True, timeout=60, **options)


@pytest.mark.parametrize("way", [SCRIPT, MODULE], ids=["script", "module"])
def test_both_ways_in(way):
    answer = run("--version", way=way)
    assert (answer.returncode, answer.stdout, answer.stderr) == (0, f"plimsoll {pm.__version__}\n", "")
    help_page = run("--help", way=way).stdout
    for command in ["diff", "doctor", "flame", "lint", "ops", "report", "top", "trace", "train", "view", "watch"]:
        assert f"\n  {command} " in help_page


def test_answers_come_on_standard_output():
    answer = run("ops", "--format", "json")
    assert answer.returncode == 0 and "add" in {row["name"] for row in json.loads(answer.stdout)}


def test_failures_have_the_executables_status(tmp_path):
    assert run("no-such-command").returncode == 2
    missing = run("report", str(tmp_path / "missing.pickle"))
    assert missing.returncode == 1 and missing.stderr.startswith("error: ") and missing.stdout == ""


def test_standard_input_and_the_status_of_lint():
    source = "total = 0\nfor batch in loader:\n    loss = model(batch)\n    loss.backward()\n    total += loss\n"
    findings = run("lint", "-", input=source)
    assert findings.returncode == 1 and "total += loss" in findings.stdout
    assert run("lint", "-", input="x = 1\n").returncode == 0
    assert run("lint", "--explain", "no-such-rule").returncode == 2


def test_a_snapshot_of_this_process(tmp_path):
    device = pm.private_cpu()
    pm.record_memory_history("all", device=device)
    x = pm.zeros(256, device=device)
    pm.dump_snapshot(tmp_path / "snapshot.pickle", device)
    pm.record_memory_history(None, device=device)
    report = run("report", str(tmp_path / "snapshot.pickle"), "--format", "json")
    assert report.returncode == 0 and json.loads(report.stdout)
    page = run("view", "snapshot.pickle", cwd=tmp_path)
    assert page.returncode == 0 and (tmp_path / "snapshot.pickle.html").stat().st_size > 1000
    server = subprocess.Popen(
        [*MODULE, "view", "--serve", str(tmp_path / "snapshot.pickle")],
        stdout=subprocess.PIPE,
        text=True,
        # What runs in the background of a shell ignores it, and so would the server.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert server.stdout.readline().startswith("open http://")
    time.sleep(0.2)
    server.send_signal(signal.SIGINT)
    assert server.wait(timeout=20) == -signal.SIGINT
    server.stdout.close()
    del x


def test_doctor_measures_what_advice_costs():
    answer = run("doctor", "--measure")
    assert answer.returncode == 0, answer.stderr
    machine, _, costs = answer.stdout.partition("\nmeasured costs")
    assert "cores we may use" in machine
    for what in ("gc.collect among", "empty_cache with 64 MB cached", "copy of 64 MB", "item of a number", "1,000 additions", "one addition"):
        assert what in costs
    # Each has a time, and the least is not above the largest.
    rows = [line for line in costs.splitlines() if " to " in line and "(" in line and line.startswith("  ") and "GPU" not in line]
    assert len(rows) >= 12
    for row in rows:
        least, most = re.search(r"\(([\d.,]+ [mu]s) to ([\d.,]+ [mu]s)\)", row).groups()
        assert 0 < us(least) <= us(most)


def us(text):
    number, unit = text.split()
    return float(number.replace(",", "")) * {"us": 1, "ms": 1000}[unit]
