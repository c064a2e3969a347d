"""Programs that make a watch difficult: each prints and ends as it does alone, and what the watch says is right or says
what it could not see."""

import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest

torch = pytest.importorskip("torch")

import runner  # noqa: E402

TRAIN = """
import torch
torch.manual_seed(0)
kept = []
model = torch.nn.Linear(32, 32)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def step(x=None):
    optimizer.zero_grad()
    loss = model(torch.randn(16, 32) if x is None else x).square().mean()
    loss.backward()
    optimizer.step()
    return loss.item()
"""

# What each prints is what it computes; the second is a text that the report must have, or None for no finding.
PROGRAMS = {
    "other_threads_keep": ("""
import queue, threading
asked, done = queue.Queue(), queue.Queue()
def work():
    while asked.get():
        kept.append(torch.ones(64, 64) * 2)
        done.put(1)
threading.Thread(target=work, daemon=True).start()
for _ in range(60):
    asked.put(1); done.get(); print(step())
asked.put(0)
""", "global `kept` -> list of"),
    "other_threads_prefetch": ("""
import queue, threading
batches = queue.Queue(maxsize=4)
def work():
    for at in range(60):
        batches.put(torch.full((16, 32), at / 60))
threading.Thread(target=work, daemon=True).start()
for _ in range(60):
    print(step(batches.get()))
""", None),
    "trains_in_a_thread": ("""
import threading
def work():
    for _ in range(40):
        kept.append(torch.ones(64, 64)); print(step())
one = threading.Thread(target=work); one.start(); one.join()
""", "global `kept` -> list of"),
    "forks": ("""
import os
# Threads of PyTorch's are not there in the forked process, and would be waited for.
torch.set_num_threads(1)
for at in range(40):
    print(step(), flush=True)
    if at == 20 and os.fork() == 0:
        for _ in range(20):
            kept.append(torch.ones(64, 64)); step()
        os._exit(3)
    if at == 20: print(os.wait()[1] >> 8, flush=True)
""", None),
    "workers_that_are_kept": ("""
from torch.utils.data import DataLoader
class Data(torch.utils.data.Dataset):
    def __len__(self): return 160
    def __getitem__(self, at): return torch.full((32,), at / 160)
for batch in DataLoader(Data(), batch_size=4, num_workers=2):
    kept.append(batch.repeat(8, 8)); print(step(batch))
""", "global `kept` -> list of"),
    "compiled": ("""
net = torch.compile(model, backend="aot_eager")
for _ in range(40):
    optimizer.zero_grad(); out = net(torch.randn(16, 32)); out.square().mean().backward(); optimizer.step()
    kept.append(out.detach().repeat(1, 8)); print(out.sum().item())
""", "global `kept` -> list of"),
    "compiled_and_clean": ("""
net = torch.compile(model, backend="aot_eager")
for _ in range(40):
    optimizer.zero_grad(); net(torch.randn(16, 32)).square().mean().backward(); optimizer.step()
print(model.weight.sum().item())
""", None),
    "a_subclass_is_kept": ("""
class Named(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        calls.append(func.__name__)
        return super().__torch_function__(func, types, args, kwargs)
calls = []
for _ in range(40):
    step(); kept.append(torch.ones(64, 64).as_subclass(Named) + 1)
print(len(calls), calls[:3])
""", "global `kept` -> list of"),
    "hostile_objects": ("""
class Hostile:
    def __getattr__(self, name): raise SystemExit(f"asked for {name}")
    def __eq__(self, other): raise SystemExit("compared")
    def __hash__(self): return 1
    def __bool__(self): raise SystemExit("asked for its truth")
    def __len__(self): raise SystemExit("asked for its length")
    def __iter__(self): raise SystemExit("iterated")
    def __repr__(self): raise SystemExit("printed")
    @property
    def grad(self): raise SystemExit("a property was read")
    __class__ = property(lambda self: exit("asked for its class"))
hostile = [Hostile() for _ in range(3)]
table = {hostile[0]: 1}
for _ in range(40):
    kept.append(torch.ones(64, 64)); print(step())
""", "global `kept` -> list of"),
    "leaves_at_once": ("""
import os
for _ in range(40):
    kept.append(torch.ones(64, 64)); step()
print("left", flush=True)
os._exit(5)
""", "global `kept` -> list of"),
    "its_own_signal": ("""
import os, signal
signal.signal(signal.SIGUSR1, lambda *_: print("its own"))
for at in range(40):
    print(step())
    if at % 10 == 0: os.kill(os.getpid(), signal.SIGUSR1)
""", None),
    "no_collector": ("""
import gc
gc.disable()
class Batch:
    def __init__(self):
        self.x = torch.ones(64, 64); self.me = self
for _ in range(40):
    Batch(); step()
print(gc.isenabled(), gc.get_count()[1:] != ())
""", "a reference cycle: Batch"),
    "errors_are_raised_and_caught": ("""
for at in range(40):
    try:
        step(torch.ones(3, 5))
    except RuntimeError as error:
        print(type(error).__name__, str(error)[:30])
    print(step())
""", None),
    "runs_out_and_goes_on": ("""
for at in range(40):
    kept.append(torch.ones(64, 64)); print(step())
    if at == 6:
        try: torch.ones(2**55)
        except (RuntimeError, MemoryError) as error: print(type(error).__name__)
""", "out_of_memory"),
    "many_tensors": ("""
many = [torch.ones(1) for _ in range(60_000)]
for _ in range(40):
    print(step())
""", None),
    "closes_its_streams": ("""
import os, sys
for _ in range(40):
    kept.append(torch.ones(64, 64)); step()
print("closed", flush=True)
sys.stderr.close(); os.close(2)
""", "global `kept` -> list of"),
    "a_mode_of_its_own": ("""
from torch.utils._python_dispatch import TorchDispatchMode
class Counts(TorchDispatchMode):
    count = 0
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        Counts.count += 1
        return func(*args, **(kwargs or {}))
with Counts():
    for _ in range(40):
        step()
print(Counts.count)
""", None),
    "asks_whether_it_is_installed": ("""
for _ in range(40):
    kept.append(torch.ones(64, 64)); print(step())
print(type(__builtins__).__name__, sorted(vars()))
""", "global `kept` -> list of"),
    "a_state_that_is_no_optimizers": ("""
class Trainer:
    def __init__(self): self.state = {"outputs": []}
trainer = Trainer()
for _ in range(40):
    trainer.state["outputs"].append(torch.ones(64, 64)); print(step())
""", "global `trainer`.state['outputs'] -> list of"),
    "a_context_variable": ("""
import contextvars
seen = contextvars.ContextVar("seen", default=())
for _ in range(40):
    seen.set((*seen.get(), torch.ones(64, 64))); print(step())
""", "context variable `seen` -> tuple of"),
    "a_generator_without_a_name": ("""
def batches():
    given = []
    for at in range(40):
        given.append(torch.full((16, 32), at / 40)); yield given[-1]
for at, batch in enumerate(batches()):
    print(step(batch))
""", "a running loop's generator batches() -> local `given` of batches() -> list of"),
    "an_iterator_without_a_name": ("""
class Batches:
    def __init__(self): self.given = []
    def __iter__(self): return self
    def __next__(self):
        if len(self.given) == 40: raise StopIteration
        self.given.append(torch.full((16, 32), len(self.given) / 40)); return self.given[-1]
for batch in Batches():
    print(step(batch))
""", "a running loop's Batches.given -> list of"),
    "averages_by_name_with_their_graphs": ("""
averages = {name: value.clone() for name, value in model.named_parameters()}
for _ in range(40):
    print(step())
    for name, value in model.named_parameters():
        averages[name] = 0.99 * averages[name] + 0.01 * value
""", "global `averages` -> dict of 2 -> grad_fn AddBackward0"),
    "interrupted": ("""
import atexit
atexit.register(print, "at exit")
for _ in range(40):
    print(step())
raise KeyboardInterrupt
""", None),
    "a_thread_that_outlives_its_main": ("""
import threading
def work():
    threading.main_thread().join()
    for _ in range(20): print(step())
threading.Thread(target=work).start()
""", "threads of the program still run"),
    "steps_within_backward": ("""
parts = torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.Linear(32, 32))
each = {one: torch.optim.SGD([one], lr=0.1) for one in parts.parameters()}
def learn(one):
    each[one].step()
    each[one].zero_grad()
for one in parts.parameters():
    one.register_post_accumulate_grad_hook(learn)
for _ in range(80):
    out = parts(torch.randn(16, 32))
    out.square().mean().backward()
    kept.append(out.detach())
print(out.sum().item())
""", "global `kept` -> list of"),
    "has_a_mode_on_throughout": ("""
from torch.utils._python_dispatch import TorchDispatchMode
class Counts(TorchDispatchMode):
    count = 0
    def __torch_dispatch__(self, function, types, arguments=(), named=None):
        Counts.count += 1
        return function(*arguments, **(named or {}))
with Counts():
    for _ in range(80):
        print(step()); kept.append(torch.ones(64, 64))
print(Counts.count)
""", "global `kept` -> list of"),
    "has_a_mode_on_and_keeps_nothing": ("""
from torch.utils._python_dispatch import TorchDispatchMode
class Counts(TorchDispatchMode):
    count = 0
    def __torch_dispatch__(self, function, types, arguments=(), named=None):
        Counts.count += 1
        return function(*arguments, **(named or {}))
with Counts():
    for at in range(80):
        print(step()); kept.append(torch.ones(64, 64)); del kept[:-8]
print(Counts.count)
""", None),
    "serves_in_a_pool": ("""
import concurrent.futures
def serve(at):
    with torch.no_grad():
        return model(torch.full((16, 32), at / 200)).sum().item()
with concurrent.futures.ThreadPoolExecutor(4) as pool:
    print(list(pool.map(serve, range(200))))
""", None),
    "reads_batches_in_a_thread": ("""
import queue, threading
batches = queue.Queue(8)
def read():
    data = torch.utils.data.TensorDataset(torch.arange(5120.0).reshape(160, 32))
    for _ in range(8):
        for x, in torch.utils.data.DataLoader(data, 16):
            batches.put(x / 5120)
    batches.put(None)
threading.Thread(target=read).start()
while (x := batches.get()) is not None:
    print(step(x))
    kept.append(torch.ones(64, 64))
""", "global `kept` -> list of"),
    "two_threads_learn_the_same": ("""
import threading
def learn(seed, found):
    drawn = torch.Generator().manual_seed(seed)
    own = torch.nn.Linear(32, 32)
    with torch.no_grad():
        own.weight.copy_(torch.randn(32, 32, generator=drawn)); own.bias.zero_()
    steps = torch.optim.SGD(own.parameters(), lr=0.1)
    for _ in range(120):
        steps.zero_grad()
        out = own(torch.randn(16, 32, generator=drawn))
        out.square().mean().backward()
        steps.step()
        kept.append(out.detach())
    found[seed] = own.weight.sum().item()
found = {}
both = [threading.Thread(target=learn, args=(seed, found)) for seed in (1, 2)]
for one in both: one.start()
for one in both: one.join()
print(sorted(found.items()))
""", "global `kept` -> list of"),
    "has_tensors_with_functions_of_their_own": ("""
class Counted(torch.Tensor):
    calls = 0
    @classmethod
    def __torch_function__(cls, function, types, arguments=(), named=None):
        Counted.calls += 1
        return super().__torch_function__(function, types, arguments, named or {})
own = [torch.nn.Parameter(torch.ones(8, 8).as_subclass(Counted)), torch.nn.Parameter(torch.ones(4).as_subclass(Counted))]
each = [torch.optim.SGD([one], lr=0.1) for one in own]
for _ in range(40):
    sum(one.sum() for one in own).backward()
    for one in each:
        one.step(); one.zero_grad()
print(Counted.calls)
""", None),
    "raises_errors_that_say_nothing": ("""
class Silent:
    def __str__(self):
        print("asked")
        return "can't allocate memory"
    __repr__ = __str__
class Fails(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        raise RuntimeError(Silent())
for _ in range(40):
    try:
        Fails.apply(torch.ones(1))
    except RuntimeError:
        pass
    print(step())
""", None),
    "loads_a_module_lazily": ("""
import importlib.util, pathlib, sys
def lazy(name, source):
    file = pathlib.Path(__file__).with_name(f"{name}.py")
    file.write_text(source)
    spec = importlib.util.spec_from_file_location(name, file)
    spec.loader = importlib.util.LazyLoader(spec.loader)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
lazy("is_told", "print('it is imported')")
lazy("is_missing", "raise ImportError('an optional dependency is missing')")
for _ in range(40):
    print(step())
""", None),
    "tensors_that_are_asked_for_their_sizes": ("""
class Wrapped(torch.Tensor):
    @staticmethod
    def __new__(cls, inside):
        return torch.Tensor._make_wrapper_subclass(cls, inside.shape, dtype=inside.dtype, dispatch_sizes_strides_policy="sizes")
    def __init__(self, inside): self.inside = inside
    @classmethod
    def __torch_dispatch__(cls, function, types, arguments=(), named=None):
        if function is not torch.ops.aten.add.Tensor: raise NotImplementedError(str(function))
        return function(*[one.inside if isinstance(one, Wrapped) else one for one in arguments])
wrapped = Wrapped(torch.ones(16, 32))
for _ in range(40):
    kept.append(torch.ones(64, 64)); print(step())
""", "global `kept` -> list of"),
    "learns_a_tensor_that_is_asked_for_its_sizes": ("""
class Counted(torch.Tensor):
    asked = []
    @staticmethod
    def __new__(cls, inside):
        return torch.Tensor._make_wrapper_subclass(cls, inside.shape, dtype=inside.dtype, dispatch_sizes_strides_policy="sizes")
    def __init__(self, inside): self.inside = inside
    @classmethod
    def __torch_dispatch__(cls, function, types, arguments=(), named=None):
        Counted.asked.append(str(function))
        return function(*[one.inside if isinstance(one, Counted) else one for one in arguments], **(named or {}))
own = torch.optim.SGD([Counted(torch.ones(4))], lr=0.1)
Counted.asked.clear()
for _ in range(40):
    own.step(); print(step())
print(Counted.asked)
""", None),
    "functions_that_know_few_operators": ("""
class Unit(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, arguments=(), named=None):
        if function.__name__ != "linear": raise TypeError(f"no units for {function}")
        return super().__torch_function__(function, types, arguments, named or {}).as_subclass(torch.Tensor)
for _ in range(40):
    kept.append(torch.ones(64, 64)); print(step(torch.ones(16, 32).as_subclass(Unit)))
""", "global `kept` -> list of"),
    "functions_within_an_operator_of_its_own": ("""
class Unit(torch.Tensor):
    calls = 0
    @classmethod
    def __torch_function__(cls, function, types, arguments=(), named=None):
        Unit.calls += 1
        return super().__torch_function__(function, types, arguments, named or {})
@torch.library.custom_op("a_program::halved", mutates_args=())
def halved(x: torch.Tensor) -> torch.Tensor:
    return (x.as_subclass(Unit) / 2).as_subclass(torch.Tensor).clone()
for _ in range(40):
    kept.append(torch.ones(64, 64)); print(step(halved(torch.ones(16, 32))))
print(Unit.calls)
""", "global `kept` -> list of"),
    "functions_within_a_class_that_passes_them_on": ("""
class Unit(torch.Tensor):
    calls = 0
    @classmethod
    def __torch_function__(cls, function, types, arguments=(), named=None):
        Unit.calls += 1
        return super().__torch_function__(function, types, arguments, named or {})
class Boxed(torch.Tensor):
    __torch_function__ = torch._C._disabled_torch_function_impl
    @staticmethod
    def __new__(cls, inside): return torch.Tensor._make_wrapper_subclass(cls, inside.shape, dtype=inside.dtype)
    def __init__(self, inside): self.inside = inside
    @classmethod
    def __torch_dispatch__(cls, function, types, arguments=(), named=None):
        result = function(*[one.inside if isinstance(one, Boxed) else one for one in arguments], **(named or {}))
        print(type(result).__name__)
        return Boxed(result)
boxed = Boxed(torch.ones(4).as_subclass(Unit))
for _ in range(40):
    boxed * 2
    kept.append(torch.ones(64, 64)); print(step())
print(Unit.calls)
""", "global `kept` -> list of"),
    "gives_each_request_a_tenth_of_a_second": ("""
import signal
many = [[at] for at in range(300_000)]
def late(*_): raise TimeoutError("too slow")
signal.signal(signal.SIGALRM, late)
answered = 0
for _ in range(100):
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        model(torch.ones(4, 32))
        answered += 1
    except TimeoutError:
        pass
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
print(answered > 80)
""", None),
    "another_thread_sets_errors": ("""
import ctypes, threading, time
class Late(Exception): pass
main, arrived = threading.main_thread().ident, 0
def work():
    sent = 0
    while sent < 20:
        time.sleep(0.02)
        if sent == arrived:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(main), ctypes.py_object(Late))
            sent += 1
threading.Thread(target=work, daemon=True).start()
begun = time.monotonic()
while arrived < 20 and time.monotonic() < begun + 60:
    try:
        while time.monotonic() < begun + 60:
            model(torch.ones(4, 32))
    except Late:
        arrived += 1
print(arrived)
""", None),
    "a_mode_that_counts_functions": ("""
import collections, gc
from torch.overrides import TorchFunctionMode
gc.disable()
class Counts(TorchFunctionMode):
    seen = collections.Counter()
    def __torch_function__(self, function, types, arguments=(), named=None):
        self.seen[getattr(function, "__name__", str(function))] += 1
        return function(*arguments, **(named or {}))
class Batch:
    def __init__(self): self.x = torch.ones(64, 64); self.me = self
with Counts():
    for _ in range(40):
        Batch(); step()
print(sorted(Counts.seen.items()))
""", "a reference cycle: Batch"),
    "warns_of_the_line_that_calls_backward": ("""
model.register_full_backward_hook(lambda *_: None)
for _ in range(40):
    optimizer.zero_grad()
    model(torch.randn(16, 32)).square().mean().backward()
    optimizer.step()
""", None),
    "warns_of_the_lines_that_call_a_module": ("""
import warnings
class Old(torch.nn.Module):
    def forward(self, x):
        warnings.warn("it is old", DeprecationWarning, stacklevel=4)
        return x * 2
old = Old()
for _ in range(40):
    old(torch.ones(4))
    old(torch.ones(4))
""", None),
    "runs_in_a_mapping_of_its_own": ("""
class Scope(dict):
    def items(self): print("asked for all"); return super().items()
    def clear(self): print("cleared")
exec("mine = []\\nfor _ in range(40):\\n    mine.append(torch.ones(64, 64)); print(step())\\n", vars(), Scope())
""", "local `mine` of <module>() -> list of"),
    "has_a_very_large_number_as_a_key": ("""
table = {10**5000: torch.ones(3)}
for _ in range(40):
    kept.append(torch.ones(64, 64)); print(step())
""", "global `kept` -> list of"),
    "keeps_nested_tensors": ("""
import warnings
warnings.simplefilter("ignore")
for _ in range(40):
    kept.append(torch.nested.nested_tensor([torch.ones(64, 64), torch.ones(8, 64)])); print(step())
""", "global `kept` -> list of"),
    "recurses_deeply": ("""
import sys
def deep(level):
    return step() if level == 0 else deep(level - 1)
for _ in range(40):
    print(deep(600))
""", None),
}  # fmt: skip


# The bytes that a step of the thread that tells steps keeps.
EACH_KEEPS = {
    "steps_within_backward": 2048,
    "has_a_mode_on_throughout": 64 * 64 * 4,
    "two_threads_learn_the_same": 2048,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_it_runs_as_it_does_alone(name, tmp_path):
    source, told = PROGRAMS[name]
    program, report = tmp_path / f"{name}.py", tmp_path / "report.json"
    # Libraries ask so before they import it.
    ask = "import importlib.util\nimportlib.util.find_spec('torch')\n" if name == "asks_whether_it_is_installed" else ""
    program.write_text(ask + TRAIN + source)
    alone = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, timeout=300)
    command = [sys.executable, str(runner.PACKAGE), "--format", "json", "--output", str(report), str(program)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300)
    # From 3.12 on Python names the process in a warning of forks.
    errors = [re.sub(r"\(pid=\d+\)", "", one.stderr) for one in (ran, alone)]
    assert (ran.returncode, ran.stdout, errors[0]) == (alone.returncode, alone.stdout, errors[1])
    said = json.loads(report.read_text())
    assert "the watch stopped" not in str(said["notes"])
    if name in EACH_KEEPS:
        (finding,) = said["findings"]
        assert finding["verdict"] and finding["bytes_per_step"] == EACH_KEEPS[name]
    if told is None:
        assert [finding for finding in said["findings"] if finding["verdict"]] == []
        assert said["steps"] >= 30
    elif told == "out_of_memory":
        assert {one["held_by"].split(" ->")[0] for one in said["out_of_memory"]} >= {"global `kept`"}
    else:
        assert told in report.read_text()


def test_what_is_alive_is_written_when_memory_runs_out(tmp_path):
    program, report, there = tmp_path / "fills.py", tmp_path / "report", tmp_path / "shortage"
    program.write_text(TRAIN + "kept.append(torch.ones(64, 64))\n" + PROGRAMS["runs_out_and_goes_on"][0])
    command = [sys.executable, str(runner.PACKAGE), "--on-oom", str(there), "--output", str(report), str(program)]
    assert subprocess.run(command, capture_output=True, timeout=120).returncode == 0
    assert there.read_text().startswith("watch: memory ran out at step 7\n")
    assert "held by global `kept` -> list of 8" in there.read_text()


def test_a_signal_ends_it_as_it_would(tmp_path):
    program = tmp_path / "long.py"
    program.write_text(TRAIN + "print('begun', flush=True)\nwhile True:\n    step()\n")
    for which in (signal.SIGTERM, signal.SIGKILL):
        running = subprocess.Popen([sys.executable, str(runner.PACKAGE), str(program)], stdout=subprocess.PIPE, text=True)
        assert running.stdout.readline() == "begun\n"
        time.sleep(0.3)
        running.send_signal(which)
        assert running.wait(timeout=60) == -which
        running.stdout.close()


def test_a_report_that_nobody_reads_changes_nothing(tmp_path):
    program = tmp_path / "short.py"
    program.write_text("print('done')\n")
    reads, writes = os.pipe()
    os.close(reads)
    try:
        ran = subprocess.run([sys.executable, str(runner.PACKAGE), str(program)], stdout=subprocess.PIPE, stderr=writes)
    finally:
        os.close(writes)
    assert (ran.returncode, ran.stdout) == (0, b"done\n")
