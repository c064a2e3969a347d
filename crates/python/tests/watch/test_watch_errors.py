"""Errors of a watched program: kept ones hold nothing that they do not hold alone, what ends the program is told as Python tells
it, and deadlines arrive."""

import re
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

import runner  # noqa: E402

TRAIN = """
import gc, torch
model = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def step():
    optimizer.zero_grad()
    model(torch.randn(4, 8)).sum().backward()
    optimizer.step()
"""


def run(program, *command):
    return subprocess.run([sys.executable, *command, str(program)], capture_output=True, text=True, timeout=120)


@pytest.fixture
def both(tmp_path):
    """Runs a program alone and under the watch."""

    def ran(text):
        program = tmp_path / "program.py"
        program.write_text(text)
        return run(program), run(program, str(runner.PACKAGE))

    return ran


def test_errors_of_operations_that_are_kept_keep_no_more(both):
    alone, watched = both(TRAIN + """
errors, weight = [], torch.randn(8, 100)
for _ in range(40):
    try:
        x = torch.randn(100, 9)
        (x * 2) @ weight
    except RuntimeError as error:
        errors.append(error)
    x = None
    step()
gc.collect()
print(len(errors), sum(type(one) is torch.Tensor and tuple(one.shape) == (100, 9) for one in gc.get_objects()))
""")
    assert alone.stdout == watched.stdout == "40 0\n"
    assert "; 0 findings" in watched.stderr


def test_an_error_that_ends_a_look_keeps_nothing_of_it(both):
    _, watched = both(TRAIN + """
import signal, sys
class Late(Exception): pass
def late(*_): raise Late
signal.signal(signal.SIGALRM, late)
def serve(errors):
    cache = [torch.zeros(100) for _ in range(20000)]
    for at in range(60):
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.01 if at % 4 else 0.1)
            step()
        except Late as error:
            errors.append(error)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    cache.clear()
errors = []
serve(errors)
gc.collect()
print(sum(type(one) is torch.Tensor and one.numel() == 100 for one in gc.get_objects()))
""")
    assert (watched.returncode, watched.stdout) == (0, "0\n"), watched.stderr


def test_what_is_called_at_the_end_knows_the_last_error(both):
    alone, watched = both("""
import atexit, sys, threading, time, torch
class Log:
    def __del__(self): print("log closed", flush=True)
def tell():
    error = getattr(sys, "last_exc", None) or sys.last_value
    print(type(error).__name__, error, sys.last_type is type(error), sys.last_traceback.tb_lineno)
atexit.register(tell)
def wait():
    time.sleep(0.2)
    print("thread ends", flush=True)
threading.Thread(target=wait).start()
def main():
    log = Log()
    raise ValueError("x")
main()
""")
    assert (watched.returncode, watched.stdout) == (alone.returncode, alone.stdout)
    assert watched.stdout.startswith("thread ends\nValueError x True ")


@pytest.mark.skipif(sys.version_info < (3, 11), reason="there are no exception groups")
def test_groups_of_errors_are_told_without_the_watchs_frames(both):
    alone, watched = both(TRAIN + """
import asyncio
async def job(at):
    a = torch.randn(3, 4)
    return a @ a if at == 7 else a
async def main():
    for at in range(20):
        step()
        async with asyncio.TaskGroup() as group:
            group.create_task(job(at))
asyncio.run(main())
""")
    # Colours and carets are Python's own matter.
    assert watched.stderr.count("File ") == alone.stderr.count("File ") > 2 and "_making.py" not in watched.stderr
    assert watched.returncode == alone.returncode == 1


@pytest.mark.parametrize("handler", ["functools.partial(late, 'now')", "Late.of", "Late()"])
def test_deadlines_by_any_handler_arrive(both, handler):
    _, watched = both(TRAIN + f"""
import functools, signal, time
def late(message, number, frame): raise TimeoutError(message)
class Late:
    def __call__(self, number, frame): raise TimeoutError
    @classmethod
    def of(cls, number, frame): raise TimeoutError
signal.signal(signal.SIGALRM, {handler})
cache = [torch.zeros(10) for _ in range(20000)]
came = arrived = 0
for at in range(60):
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.01)
        step()
        if at % 4 == 0:
            time.sleep(0.05)
    except TimeoutError:
        arrived += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
print(arrived >= 15)
""")
    assert (watched.returncode, watched.stdout) == (0, "True\n"), watched.stderr
    assert "the watch stopped" not in watched.stderr


def test_native_handlers_of_the_signal_stay(both):
    alone, watched = both("""
import faulthandler, os, signal
faulthandler.register(signal.SIGUSR1)
import torch
os.kill(os.getpid(), signal.SIGUSR1)
print("done")
""")
    assert alone.stdout == watched.stdout == "done\n"
    for ran in (alone, watched):
        assert re.search(r"Current thread .*most recent call first", ran.stderr), ran.stderr


@pytest.mark.parametrize("steps", [6, 7, 11, 15])
def test_a_trace_records_the_program_alone(both, steps):
    alone, watched = both(f"""
import warnings, torch
warnings.simplefilter("ignore")
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(8, 8)
    def forward(self, x):
        return self.linear(x).relu()
model, x = Model().eval(), torch.randn(2, 8)
for _ in range({steps}):
    model(x)
print(str(torch.jit.trace(model, x).inlined_graph).count("aten::"))
""")
    assert (watched.returncode, watched.stdout) == (alone.returncode, alone.stdout) == (0, "2\n"), watched.stderr


def test_a_watch_within_itself_leaves_the_commands_alone(both):
    _, watched = both("""
import torch, plimsoll.watch
watch = plimsoll.watch.Watch()
@watch
def recurse(depth):
    if depth:
        recurse(depth - 1)
try:
    recurse(1)
except RuntimeError as error:
    print(error)
model, kept = torch.nn.Linear(8, 64), []
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(40):
    out = model(torch.randn(16, 8))
    out.sum().backward()
    optimizer.step()
    kept.append(out.detach())
""")
    assert watched.stdout.startswith("watch: another watch is on"), watched.stderr
    assert "watch: 40 steps" in watched.stderr and "global `kept` -> list of" in watched.stderr
