"""What `import plimsoll` loads, and what it needs: little of the package, no NumPy, and an interpreter with its lock. How long it
takes is a row of `cargo xtask bench python`."""

import pkgutil
import subprocess
import sys

import plimsoll as pm


def run(program):
    """Runs a program in a process of its own; what it printed."""
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


#: Without anything of a site, which may load modules before a program does.
LOADED = "import sys; before = set(sys.modules); import plimsoll; print(*sorted(set(sys.modules) - before))"


def test_import_loads_no_more_than_it_must():
    answer = subprocess.run(
        [sys.executable, "-S", "-c", f"import sys; sys.path[:0] = {sys.path!r}; {LOADED}"],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    loaded = set(answer.stdout.split())
    assert "plimsoll._plimsoll" in loaded
    slow = {"asyncio", "dataclasses", "inspect", "json", "multiprocessing", "numpy", "pathlib", "socket", "statistics", "unittest"}
    assert not loaded & slow
    parts = {"amp.grad_scaler", "autograd.profiler", "masked", "nn", "optim", "profiler", "utils.benchmark", "utils.data", "watch"}
    assert not loaded & {f"plimsoll.{part}" for part in parts}


def test_every_part_is_an_attribute_without_an_import_of_its_own():
    parts = [module.name for module in pkgutil.iter_modules(pm.__path__) if not module.name.startswith("_")]
    # It is of the command, and never a name of programs.
    parts = [part for part in parts if part != "run"]
    assert len(parts) > 20
    for package in ("amp", "autograd", "nn", "optim", "utils"):
        inner = pkgutil.iter_modules(getattr(pm, package).__path__)
        parts += [f"{package}.{module.name}" for module in inner if not module.name.startswith("_")]
    missing = run(f"""
import functools, plimsoll
for part in {parts!r}:
    try:
        functools.reduce(getattr, part.split("."), plimsoll)
    except AttributeError:
        print(part)
""")
    assert missing.split() == []


def test_names_that_are_loaded_later_are_listed():
    assert {"GradScaler", "nn", "optim", "rms_norm", "watch"} <= set(dir(pm))
    assert {"checkpoint", "data"} <= set(dir(pm.utils))
    assert {"functional", "profiler"} <= set(dir(pm.autograd))
    assert "GradScaler" in dir(pm.amp)
    for module in (pm, pm.utils, pm.autograd, pm.amp):
        try:
            module.no_such_name
        except AttributeError as error:
            assert str(error) == f"module '{module.__name__}' has no attribute 'no_such_name'"
        else:
            raise AssertionError(module)


def test_programs_need_no_numpy():
    answer = run("""
import sys
sys.modules["numpy"] = None  # as if it were not installed
import plimsoll as torch
from plimsoll import nn

try:
    import numpy
except ImportError:
    pass
else:
    raise AssertionError("numpy is there after all")

model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.Adam(model.parameters())
data = torch.utils.data.TensorDataset(torch.randn(8, 4), torch.randn(8, 1))
for x, y in torch.utils.data.DataLoader(data, batch_size=4, shuffle=True):
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()
x = torch.tensor([[1, 2], [3, 4]])
assert x[1].tolist() == [3, 4] and x[x > 2].tolist() == [3, 4] and x[[0]].tolist() == [[1, 2]]
repr(model), repr(x), torch.arange(3).sum().item()
try:
    x.numpy()
except Exception as error:
    print(type(error).__name__, error)
""")
    assert "numpy" in answer.lower()


def test_a_build_without_the_lock_is_refused():
    answer = subprocess.run(
        [sys.executable, "-c", "import sys; sys.version = '3.14.0 free-threading build (main) [GCC 12]'; import plimsoll"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert answer.returncode == 1
    last = answer.stderr.strip().splitlines()[-1]
    assert last.startswith("ImportError: plimsoll does not run on free-threaded builds of CPython") and "(3.14.0)" in last
