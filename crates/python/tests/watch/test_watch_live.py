"""`plimsoll watch --live`: figures while the program runs, over a socket that only the same user can open and as lines on
standard error. The program's own output, threads and exit status stay its own."""

import contextlib
import json
import os
import socket
import stat
import subprocess
import sys
import time

import pytest

torch = pytest.importorskip("torch")

import runner  # noqa: E402

TRAINS = """
import os, sys, threading, time, torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList([torch.nn.Linear(64, 64, bias=False) for _ in range(20)])
    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x
def main():
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    kept = []
    while not os.path.exists(sys.argv[1]):
        out = model(torch.randn(64, 64))
        out.square().mean().backward()
        optimizer.step()
        kept.append(out.detach())
        time.sleep(0.02)
    print("threads", threading.active_count(), len(threading.enumerate()))
main()
"""


class Running:
    """A watched program that goes on until it is told to stop: a busy machine takes its time."""

    def __init__(self, tmp_path, source=TRAINS, options=("--live=0",)):
        program = tmp_path / "trains.py"
        program.write_text(source)
        runtime = tmp_path / "run"
        runtime.mkdir(exist_ok=True)
        self.errors = tmp_path / "errors"
        self._stop = tmp_path / "stop"
        self.process = subprocess.Popen(
            [sys.executable, str(runner.PACKAGE), *options, str(program), str(self._stop)],
            stdout=subprocess.PIPE, stderr=self.errors.open("w"), text=True,
            env={**os.environ, "XDG_RUNTIME_DIR": str(runtime), "OMP_NUM_THREADS": "1"},
        )  # fmt: skip
        self.path = runtime / "plimsoll" / f"{self.process.pid}.sock"

    def until(self, condition):
        """Waits until `condition` gives something, and gives that back."""
        end = time.monotonic() + 240
        while not (found := condition()):
            assert self.process.poll() is None, self.errors.read_text()
            assert time.monotonic() < end, "it does not come"
            time.sleep(0.1)
        return found

    def connected(self):
        self.until(self.path.exists)
        asking = socket.socket(socket.AF_UNIX)
        asking.settimeout(60)
        asking.connect(str(self.path))
        return asking

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._stop.touch()
        self.process.kill()
        self.process.communicate()

    def end(self):
        """Standard output and standard error."""
        self._stop.touch()
        output, _ = self.process.communicate(timeout=240)
        assert self.process.returncode == 0
        return output, self.errors.read_text()


def ask(asking, request=b'{"live": 1, "ask": "figures"}\n'):
    asking.sendall(request)
    answer = b""
    while not answer.endswith(b"\n"):
        got = asking.recv(1 << 16)
        if not got:
            break
        answer += got
    return json.loads(answer)


def part(figures, by):
    return next({row["name"]: row for row in part["rows"]} for part in figures["parts"] if part["by"] == by)


def alive(running):
    asking = running.connected()
    assert stat.S_IMODE(os.stat(running.path).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(running.path.parent).st_mode) == 0o700

    def settled():
        figures = ask(asking)
        is_steady = figures["growing"] and figures["parts"] and figures["step_seconds"]
        holders = part(figures, "holder").items() if is_steady else ()
        kept = next((row for name, row in holders if name.startswith("local `kept` of main()")), None)
        return (figures, kept) if kept and kept["growth_per_step"] else None

    figures, kept = running.until(settled)
    assert figures["process"]["name"] == "trains.py" and figures["process"]["pid"] == running.process.pid
    assert figures["steps_of"] == "optimizer steps" and figures["step_seconds"] > 0.02
    each = 64 * 64 * 4
    kinds = part(figures, "kind")
    assert (kinds["parameter"]["bytes"], kinds["parameter"]["count"]) == (20 * each, 20)
    assert kinds["gradient of a parameter"]["bytes"] == 20 * each
    modules = part(figures, "module")
    # The parameter and its gradient; layers have names even where a list has many.
    assert all(modules[f"model.layers.{at}"]["bytes"] == 2 * each for at in range(20))
    # One tensor a step, exactly.
    assert kept["bytes"] == each * kept["count"] and kept["growth_per_step"] == each
    (growing,) = figures["growing"]
    assert growing["line"] == "trains.py:9" and growing["held_by"].startswith("local `kept` of main()")


def refused(running):
    assert "line of JSON" in ask(running.connected(), b"hello\n")["error"]
    assert "version 1" in ask(running.connected(), b'{"live": 2, "ask": "figures"}\n')["error"]
    assert "nothing else" in ask(running.connected(), b'{"live": 1, "ask": "tensors"}\n')["error"]
    assert "line of JSON" in ask(running.connected(), b"\xff\xfe[]\n")["error"]
    endless = running.connected()
    endless.sendall(b"x" * 5000)
    # It is let go of, whether or not all of it was read.
    with contextlib.suppress(ConnectionResetError):
        assert endless.recv(1) == b""
    halves = running.connected()
    halves.sendall(b'{"live": 1, "ask"')
    assert ask(halves, b': "figures"}\n')["live"] == 1


def test_a_program_is_told_of_while_it_runs_and_stays_as_it_is(tmp_path):
    with Running(tmp_path, options=("--live=0.5",)) as running:
        silent = running.connected()
        alive(running)
        refused(running)
        said = running.until(
            lambda: [line for line in running.errors.read_text().splitlines() if "growing" in line and "step" in line]
        )
        assert said[0].startswith("watch: step ") and " a step, tensors " in said[0] and ", process " in said[0]
        assert "growing 16.0 KiB a step at trains.py:9" in said[-1]
        output, errors = running.end()
        # The watch's thread is none of the program's.
        assert output == "threads 1 1\n"
        # The report comes as without the option; how many steps it had to judge is the machine's.
        assert "counted by optimizer steps; 1 " in errors and "served no longer" not in errors
        assert not running.path.exists() and silent.recv(1) == b""


NOTHING = "import torch\nprint('over', flush=True)\n"


def test_without_the_option_nothing_is_served(tmp_path):
    with Running(tmp_path, NOTHING, options=()) as running:
        assert running.end()[0] == "over\n" and not running.path.parent.exists()


def test_a_forked_process_lets_go_of_the_socket(tmp_path):
    program = """
import os, sys, time, torch
child = os.fork()
if not child:
    while not os.path.exists(sys.argv[1]):
        time.sleep(0.05)
    os._exit(0)
print("over", flush=True)
"""
    with Running(tmp_path, program) as running:
        assert running.process.stdout.readline() == "over\n"
        # The child lives on, and no longer has it.
        assert running.process.wait(timeout=240) == 0
        assert not running.path.exists()


def test_a_folder_that_cannot_be_used_stops_nobody(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "plimsoll").write_text("a file")
    with Running(tmp_path, NOTHING) as running:
        # Another folder serves: the program runs either way.
        assert running.end()[0] == "over\n" and (tmp_path / "run" / "plimsoll").read_text() == "a file"


def test_a_block_can_be_looked_at(tmp_path):
    program = f"""
import sys
sys.path.insert(0, {str(runner.HERE)!r})
import runner, torch, os
watch = runner.load()
with watch.watch(live=True) as watched:
    path = watched._session.live._socket.path
    assert os.path.exists(path)
assert not os.path.exists(path)
print("served")
"""
    script = tmp_path / "block.py"
    script.write_text(program)
    runtime = tmp_path / "run"
    runtime.mkdir()
    ran = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True, text=True, timeout=240, env={**os.environ, "XDG_RUNTIME_DIR": str(runtime)},
    )  # fmt: skip
    assert ran.stdout == "served\n", ran.stderr
