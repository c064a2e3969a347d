"""`plimsoll run`: programs written for PyTorch, as they stand, and the report of their memory."""

import json
import os
import pathlib
import subprocess
import sys
import textwrap

import plimsoll
import pytest

PACKAGE = pathlib.Path(plimsoll.__file__).parent.parent


def run(arguments, cwd, **environment):
    """The command in a process of its own."""
    found = {**os.environ, "PYTHONPATH": str(PACKAGE), **environment}
    return subprocess.run(
        [sys.executable, "-m", "plimsoll", "run", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=cwd,
        env=found,
    )


@pytest.fixture
def script(tmp_path):
    def write(text, name="program.py"):
        path = tmp_path / name
        path.write_text(textwrap.dedent(text))
        return path

    return write


TRAINING = """
    import torch
    import torch.nn as nn
    import torch.nn.functional as F
    from torch.utils.data import DataLoader, TensorDataset

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(64, 32), torch.randint(0, 4, (64,)))
    model = nn.Sequential(nn.Linear(32, 256), nn.ReLU(), nn.Linear(256, 4)).to(device)
    optimizer = torch.optim.Adam(model.parameters())
    kept = []
    for epoch in range(3):
        for x, y in DataLoader(data, batch_size=8):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x.to(device)), y.to(device))
            loss.backward()
            optimizer.step()
            kept.append(KEPT)
    print("done", len(kept), device.type)
"""


def test_a_program_sees_itself_as_it_would_under_python(script, tmp_path):
    script("answer = 42", "beside.py")
    path = script(
        """
        import sys, torch, beside
        assert __name__ == "__main__" and beside.answer == 42
        print(sys.argv[0].endswith("program.py"), sys.argv[1:], torch.__name__, torch.__version__.split("+")[0])
        sys.exit(7)
        """
    )
    done = run([path, "--limit", "-x"], tmp_path)
    assert done.returncode == 7
    assert done.stdout == "True ['--limit', '-x'] torch 2.15.0\n"
    assert "plimsoll run: program.py" in done.stderr


def test_a_module_runs_as_with_m(script, tmp_path):
    script("import torch, sys\nprint(__name__, torch.ones(2).sum().item(), sys.argv[1:])", "somewhere.py")
    done = run(["-m", "somewhere", "a"], tmp_path)
    assert (done.returncode, done.stdout) == (0, "__main__ 2.0 ['a']\n")


def test_the_traceback_is_the_programs_own(script, tmp_path):
    path = script("import torch\ndef f():\n    return torch.ones(2) @ torch.ones(3)\nf()\n")
    done = run([path], tmp_path)
    assert done.returncode == 1 and done.stdout == ""
    trace = done.stderr.split("── plimsoll run")[0]
    assert trace.count("File ") == 2 and "plimsoll/run" not in trace and "program.py\", line 3" in trace
    assert "It ended by" in done.stderr


def test_an_interrupted_program_ends_as_under_python(script, tmp_path):
    # Python waits for threads and calls what is to be called at the end, then ends by the signal.
    program = script("""
        import atexit, threading, time
        atexit.register(lambda: print("at the end"))
        threading.Thread(target=lambda: (time.sleep(0.2), print("thread"))).start()
        raise KeyboardInterrupt
    """)
    ran = run([program], tmp_path)
    assert (ran.returncode, ran.stdout) == (-2, "thread\nat the end\n")
    assert ran.stderr.count("Traceback") == 1 and "It ended by KeyboardInterrupt" in ran.stderr


def test_the_report_names_peak_holders_and_a_leak(script, tmp_path):
    done = run([script(TRAINING.replace("KEPT", "model(x.to(device))"))], tmp_path)
    assert (done.returncode, done.stdout) == (0, "done 24 cuda\n")
    report = done.stderr
    assert "Peak memory of cuda:0" in report and "by kind" in report and "by module" in report and "by line" in report
    assert "24 steps counted by optimizer steps" in report
    assert "global `model`" in report and "global `optimizer`" in report and "Cached by the allocator" in report
    assert "1. leak:" in report and "program.py:19" in report.split("leak:")[1]
    assert all(len(line) <= 80 for line in report.splitlines()), report


def test_a_clean_program_has_no_findings(script, tmp_path):
    done = run([script(TRAINING.replace("KEPT", "loss.item()"))], tmp_path)
    assert "No findings." in done.stderr and done.returncode == 0


def test_without_a_stand_in_the_cpu_is_reported(script, tmp_path):
    done = run(["--device-memory", "0", script(TRAINING.replace("KEPT", "loss.item()"))], tmp_path)
    if plimsoll.cuda.is_available():
        pytest.skip("this machine has a GPU")
    assert done.stdout == "done 24 cpu\n"
    assert "Peak memory of cpu" in done.stderr and "cuda" not in done.stderr


def test_a_limit_is_kept(script, tmp_path):
    path = script("import torch\nx = torch.zeros(64 << 20)\n")
    done = run(["--limit", "64MiB", path], tmp_path)
    assert done.returncode == 1 and "OutOfMemoryError" in done.stderr


def test_the_stand_in_has_the_memory_that_was_said(script, tmp_path):
    path = script(
        """
        import torch
        free, total = torch.cuda.mem_get_info()
        x = torch.zeros(1 << 20, device="cuda")
        print(total, x.device, x.is_cuda, torch.cuda.memory_allocated(), torch.cuda.get_device_properties(0).total_memory)
        torch.zeros(1 << 30, device="cuda")
        """
    )
    if plimsoll.cuda.is_available():
        pytest.skip("this machine has a GPU")
    done = run(["--device-memory", "1GiB", path], tmp_path)
    assert done.stdout == f"{1 << 30} cuda:0 True {4 << 20} {1 << 30}\n"
    assert done.returncode == 1 and "OutOfMemoryError" in done.stderr


def test_snapshot_and_page_are_written(script, tmp_path):
    path = script("import torch\nx = torch.zeros(1000)\n")
    done = run(["--snapshot", "s.pickle", "--html", "s.html", path], tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "s.html").read_text().lower().startswith("<!doctype html>")
    report = run(["-m", "torch.cuda._memory_viz", "stats", "s.pickle"], tmp_path)
    assert report.returncode == 0 and "program.py:2" in report.stdout
    plot = run(["-m", "torch.cuda._memory_viz", "trace_plot", "s.pickle", "-o", "plot.html"], tmp_path)
    assert plot.returncode == 0 and (tmp_path / "plot.html").exists()


def test_a_dry_run_gives_the_peak_without_memory(script, tmp_path):
    path = script(
        """
        import torch
        model = torch.nn.Linear(1 << 15, 1 << 15)  # 4 GiB
        y = model(torch.randn(8, 1 << 15))
        print(tuple(y.shape), flush=True)
        y.sum().item()
        raise SystemExit("this is not reached")
        """
    )
    done = run(["--dry", path], tmp_path)
    assert (done.returncode, done.stdout) == (0, "(8, 32768)\n"), done.stderr
    assert "program.py:6" in done.stderr and "4.00 GiB" in done.stderr and "A dry run" in done.stderr


MISSING = {
    "torch.vmap": AttributeError,
    "torch.nn.Lineer": AttributeError,
    "import torch.distributed.rpc": ModuleNotFoundError,
    "from torch import vmap": ImportError,
    "from torch.fft import rfft": ModuleNotFoundError,
    "from torch.nn import Lineer": ImportError,
}


@pytest.mark.parametrize("code", MISSING)
def test_what_is_missing_is_named_with_line_and_neighbour(code, script, tmp_path):
    path = script(
        f"""
        import torch
        try:
            {code}
        except {MISSING[code].__name__} as error:
            print(error)
        print(hasattr(torch, "vmap"), hasattr(torch, "relu"))
        """
    )
    done = run([path], tmp_path)
    assert done.returncode == 0, done.stderr
    said, answers = done.stdout.splitlines()
    assert "Plimsoll does not have torch." in said and "program.py:4" in said and ";" in said
    assert answers == "False True"


def test_names_missing_where_python_cannot_tell_are_explained_at_the_end(script, tmp_path):
    for code, name in {
        "from torch.nn.functional import reluu": "torch.nn.functional.relu",
        "torch.ones(2).reluu()": "torch.Tensor.relu",
        "import torch.nn.attention.flex_attention": "Plimsoll does not have torch.nn.attention.flex_attention; ",
    }.items():
        done = run([script(f"import torch\n{code}\n")], tmp_path)
        assert done.returncode == 1
        if sys.version_info >= (3, 11):
            assert name in done.stderr, done.stderr


def test_standard_output_is_the_programs_alone(script, tmp_path):
    path = script("import torch, os\nprint('a')\ntorch.ones(3)\nos.write(1, b'b\\n')\nos._exit(5)\n")
    done = run([path], tmp_path)
    assert done.returncode == 5 and "plimsoll run: program.py" in done.stderr
    assert sorted(done.stdout.split()) in (["b"], ["a", "b"])  # what was buffered is lost by os._exit


def test_resolving_twice_gives_one_module(tmp_path):
    code = "import plimsoll.run as r; a = r.resolve_torch(); b = r.resolve_torch(); import torch; print(a is b is torch)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(PACKAGE)}
    )
    assert done.stdout == "True\n", done.stderr


def test_bad_options_are_refused(tmp_path):
    assert run(["--limit", "much", "x.py"], tmp_path).returncode == 2
    assert run([], tmp_path).returncode == 2
    assert run(["no-such.py"], tmp_path).returncode == 2
    assert "--device-memory" in run(["--help"], tmp_path).stdout


def test_the_json_of_findings_is_what_report_says(script, tmp_path):
    done = run(["--snapshot", "s.pickle", script(TRAINING.replace("KEPT", "model(x.to(device))"))], tmp_path)
    assert done.returncode == 0
    found = json.loads(plimsoll._plimsoll._report(str(tmp_path / "s.pickle"), "json"))["findings"]
    assert [finding["kind"] for finding in found] == ["leak"]
