"""The command as a process: streams, exit statuses, signals and arguments are the program's; the report comes on
standard error."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

torch = pytest.importorskip("torch")

import runner  # noqa: E402

LEAK = """
import sys, torch
kept = []
model = torch.nn.Linear(32, 32)
for _ in range(30):
    kept.append(model(torch.randn(32, 32)))
print("arguments", sys.argv[1:], __name__)
"""


# The allocation that fails is made in a window.
FILLS = """
import torch
model = torch.nn.Linear(512, 512)
def fill(pieces):
    for step in range(20):
        pieces.append(model(torch.ones(64 if step < 16 else 2**50, 512)))
fill([])
"""


def command(*arguments, **options):
    return subprocess.run(
        [sys.executable, str(runner.PACKAGE), *arguments], capture_output=True, text=True, timeout=120, **options
    )


@pytest.fixture
def leak(tmp_path):
    program = tmp_path / "leak.py"
    program.write_text(LEAK)
    return program


def test_a_report_on_standard_error_and_nothing_else(leak):
    ran = command("--every", "20", leak, "--fail", "-m", "x")
    assert (ran.returncode, ran.stdout) == (0, "arguments ['--fail', '-m', 'x'] __main__\n")
    assert "watch: 20 steps, counted by calls of a module; 1 growing so far" in ran.stderr
    final = ran.stderr[ran.stderr.index("watch: 30 steps") :]
    assert "1 finding" in final and "leak.py:6" in final and "global `kept` -> list of" in final
    assert "Remedy".lower() in final and max(map(len, final.splitlines())) <= 80


def test_a_program_that_is_an_installed_package(tmp_path):
    """Run by its name, it is the user's with all of its package, and another package beside it is a library."""
    environment = {**os.environ, "PYTHONUSERBASE": str(tmp_path)}
    asked = [sys.executable, "-c", "import site; print(site.getusersitepackages())"]
    sites = pathlib.Path(subprocess.run(asked, capture_output=True, text=True, env=environment).stdout.strip())
    for name, text in {
        "learner/__init__.py": "",
        "learner/data.py": "import drawing\n\n\ndef batch():\n    return drawing.draw()\n",
        "learner/cli/__init__.py": "",
        "learner/cli/train.py": "from learner.data import batch\n"
        + LEAK.replace("model(torch.randn(32, 32))", "(model(torch.ones(1, 32)), batch())[1]"),
        "drawing/__init__.py": "import torch\n\n\ndef draw():\n    return torch.randn(32, 32)\n",
    }.items():
        (sites / name).parent.mkdir(parents=True, exist_ok=True)
        (sites / name).write_text(text)
    environment["PYTHONPATH"] = str(sites)
    ran = command("-m", "learner.cli.train", env=environment)
    assert (ran.returncode, ran.stdout) == (0, "arguments [] __main__\n"), ran.stderr
    assert "grew 4.0 KiB a step" in ran.stderr and "held by  global `kept` -> list of" in ran.stderr, ran.stderr
    assert "line     data.py:5\n" in ran.stderr and "drawing" not in ran.stderr, ran.stderr


# One backward pass after all that is computed, of a loss that is a global.
ONCE = """
import torch
net = torch.nn.Linear(16, 64)
loss = 0
for _ in range(60):
    loss = loss + net(torch.randn(16, 16)).tanh().sum()
loss.backward()
"""


@pytest.mark.parametrize("end", ["", "torch.optim.SGD(net.parameters(), lr=0.1).step()\n"], ids=["backward", "step"])
def test_what_comes_once_tells_no_steps_and_a_module_has_one_name(tmp_path, end):
    program = tmp_path / "once.py"
    program.write_text(ONCE + end)
    ran = command("--format", "json", "--fail", program)
    assert ran.returncode == 3
    report = json.loads(ran.stderr)
    assert (report["steps"], report["counted_by"]) == (60, "calls of a module")
    (finding,) = report["findings"]
    assert finding["held_by"] == "global `loss` -> grad_fn AddBackward0" and finding["also_held_by"] == []
    assert not [note for note in report["notes"] if "too few" in note]


def test_modules_and_failing(leak):
    ran = command("--fail", "--format", "json", "-m", "leak", "--every", cwd=leak.parent)
    assert (ran.returncode, ran.stdout) == (3, "arguments ['--every'] __main__\n")
    report = json.loads(ran.stderr)
    assert (report["steps"], report["counted_by"], len(report["findings"])) == (30, "calls of a module", 1)
    assert report["findings"][0]["files"][0] == f"{leak}:6"


def test_a_module_that_is_not_there_is_told_as_python_tells_it(tmp_path):
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("")
    (tmp_path / "asks.py").write_text("import nowhere_at_all\n")
    for module in ("nowhere_at_all", "package", "package.part"):
        plain = subprocess.run([sys.executable, "-m", module], cwd=tmp_path, capture_output=True, text=True)
        ran = command("-m", module, cwd=tmp_path)
        assert (ran.returncode, plain.returncode) == (1, 1)
        assert plain.stderr in ran.stderr and "Traceback" not in ran.stderr, (plain.stderr, ran.stderr)
    assert "Traceback" in command("-m", "asks", cwd=tmp_path).stderr


@pytest.mark.parametrize(
    ("ending", "status"),
    [
        ("sys.exit(7)", 7),
        ("sys.exit('no')", 1),
        ("sys.stderr = None; sys.exit('no')", 1),
        ("os._exit(5)", 5),
        ("1 / 0", 1),
        ("sys.excepthook = lambda *_: [][1]; 1 / 0", 1),
        ("raise KeyboardInterrupt", -2),
    ],
)
def test_endings_are_the_programs_own(tmp_path, ending, status):
    program = tmp_path / "ends.py"
    program.write_text(f"import os, sys, torch\ndef end():\n    {ending}\nprint('begun', flush=True)\nend()\n")
    alone = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, timeout=60)
    ran = command("--fail", str(program))
    assert (ran.returncode, ran.stdout) == (alone.returncode, alone.stdout) == (status, "begun\n")
    without_report = "".join(
        line for line in ran.stderr.splitlines(True) if not line.startswith(("watch:", "  note:", "  the watch took"))
    )
    assert without_report == alone.stderr
    assert "watch: 0 steps" in ran.stderr


def test_errors_that_came_of_others_are_told_without_us(tmp_path):
    """In a noted step, where operations go through the watch."""
    program = tmp_path / "chain.py"
    program.write_text(
        "import torch\nm = torch.nn.Linear(4, 4); o = torch.optim.SGD(m.parameters(), .1)\nfor at in range(30):\n"
        "    m(torch.ones(1, 4)).sum().backward(); o.step()\n    try:\n        at == 5 and m(torch.ones(1, 3))\n"
        "    except RuntimeError as error:\n        raise ValueError from error\n"
    )
    alone = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, timeout=60)
    ran = command("--output", str(tmp_path / "report"), str(program))
    assert "direct cause" in alone.stderr and ran.stderr == alone.stderr


def test_out_of_memory_says_what_is_alive(tmp_path):
    program = tmp_path / "fills.py"
    program.write_text(FILLS)
    alone = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, timeout=60)
    ran = command("--format", "json", "--output", str(tmp_path / "report"), str(program))
    assert (ran.returncode, ran.stdout, ran.stderr) == (alone.returncode, alone.stdout, alone.stderr)
    pieces, model = json.loads((tmp_path / "report").read_text())["out_of_memory"]
    assert pieces["held_by"] == "a kept frame's local `pieces` of fill() -> list of 16"
    # Each output, and the input that its graph holds.
    assert (pieces["bytes"], pieces["storages"]) == (2 * 16 * 64 * 512 * 4, 32)
    assert (model["held_by"], model["bytes"]) == ("global `model`._parameters['weight']", (512 + 1) * 512 * 4)
    assert pieces["line"] == "fills.py:6"


def test_a_program_without_pytorch(tmp_path):
    program = tmp_path / "none.py"
    program.write_text("import sys\nassert 'torch' not in sys.modules\nprint(__file__)\n")
    ran = command("none.py", cwd=tmp_path)
    assert (ran.returncode, ran.stdout) == (0, f"{program}\n")
    assert ran.stderr == "watch: the program did not import PyTorch; there was nothing to watch\n"


def test_bad_arguments():
    assert command().returncode == 2
    assert command("--every", "0", "x.py").returncode == 2
    missing = command("no-such-program.py")
    assert missing.returncode == 2 and "can't open file" in missing.stderr


def test_a_report_on_a_signal(tmp_path):
    program = tmp_path / "long.py"
    program.write_text(LEAK.replace("range(30)", "range(10**9)").replace("    kept", "    __import__('time').sleep(0.01); kept"))
    running = subprocess.Popen(
        [sys.executable, str(runner.PACKAGE), str(program)], stderr=subprocess.PIPE, text=True
    )
    try:
        told = ""
        for _ in range(60):
            time.sleep(1)
            if torch_is_imported(running.pid):
                running.send_signal(signal.SIGUSR1)
                told = running.stderr.readline()
                if "growing so far" in told and "; 0 " not in told:
                    break
        assert "counted by calls of a module; 1 growing so far" in told
        assert running.poll() is None
    finally:
        running.kill()
        running.wait()


def torch_is_imported(pid):
    """The signal's own effect before a handler is there is the process's end: SIGUSR1 is caught once PyTorch is
    imported."""
    with open(f"/proc/{pid}/status") as file:
        caught = next(line for line in file if line.startswith("SigCgt:"))
    return int(caught.split()[1], 16) >> (signal.SIGUSR1 - 1) & 1


def test_a_forked_process_reports_nothing(tmp_path):
    program = tmp_path / "forks.py"
    program.write_text(LEAK + "import os\nif os.fork() == 0:\n    kept.clear(); sys.exit(4)\nprint(os.wait()[1] >> 8)\n")
    ran = command(str(program))
    assert ran.returncode == 0 and ran.stdout.endswith("\n4\n")
    assert ran.stderr.count("watch: 30 steps") == 1
    assert os.path.exists(program)


def test_the_report_is_written_into_no_file_of_the_program(tmp_path):
    program = tmp_path / "closes.py"
    program.write_text(
        "import torch, os\nos.closerange(3, 256)\nfile = open('data', 'wb', buffering=0)\n"
        "model = torch.nn.Linear(8, 8)\nfor _ in range(20):\n    model(torch.ones(4, 8)); file.write(b'x')\n"
    )
    ran = command("closes.py", cwd=tmp_path)
    assert ran.returncode == 0 and "watch: 20 steps" in ran.stderr
    assert (tmp_path / "data").read_bytes() == b"x" * 20


def test_a_program_without_standard_error(tmp_path):
    program = tmp_path / "ends.py"
    program.write_text("import sys\nsys.exit(7)\n")
    line = f"{sys.executable} {runner.PACKAGE} {program} 2>&-"
    assert subprocess.run(["sh", "-c", line], timeout=120).returncode == 7

# Where each of two processes goes on.
FORKS = """
import os, sys
child = os.fork() == 0
import torch
torch.set_num_threads(1)
kept, model = [], torch.nn.Linear(32, 32)
for _ in range(30):
    kept.append(model(torch.randn(32, 32)))
print("child" if child else os.waitstatus_to_exitcode(os.wait()[1]), flush=True)
sys.exit(4 if child else 0)
"""


def test_a_process_forked_before_pytorch_is_imported_reports_nothing(tmp_path):
    program = tmp_path / "forks.py"
    program.write_text(FORKS)
    ran = command("--fail", str(program))
    assert (ran.returncode, ran.stdout) == (3, "child\n4\n")
    assert ran.stderr.count("watch: 30 steps") == ran.stderr.count("watch:") == 1


def test_a_forked_process_is_ended_by_the_signal_that_asks_for_reports(tmp_path):
    program = tmp_path / "ends.py"
    program.write_text(
        "import os, signal, sys, torch\nchild = os.fork()\nif child == 0:\n    signal.raise_signal(signal.SIGUSR1)\n"
        "    os._exit(7)\nprint(os.waitstatus_to_exitcode(os.wait()[1]))\n"
        "assert signal.getsignal(signal.SIGUSR1) is not signal.SIG_DFL\n"
    )
    ran = command(str(program))
    assert (ran.returncode, ran.stdout) == (0, f"{-signal.SIGUSR1}\n"), ran.stderr


def test_a_program_that_leaves_at_once_fails_if_it_leaks(tmp_path):
    program = tmp_path / "leaves.py"
    program.write_text(LEAK + "import os; sys.stdout.flush(); os._exit(0)\n")
    assert command("--fail", str(program)).returncode == 3
    assert command(str(program)).returncode == 0


def test_files_are_written_where_they_are_asked_for(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "moves.py").write_text("import os\nos.chdir('elsewhere')\n" + LEAK + "torch.ones(2**55)\n")
    options = ("--output", "report", "--snapshot", "lives.json", "--on-oom", "shortage")
    assert command(*options, "moves.py", cwd=tmp_path).returncode == 1
    assert os.listdir(tmp_path / "elsewhere") == []
    assert {"report", "lives.json", "shortage"} <= set(os.listdir(tmp_path))


@pytest.mark.parametrize("path", ["./part/../tells.py", "part/../tells.py", "././tells.py"])
def test_a_file_and_its_descriptors_are_told_as_python_tells_them(path, tmp_path):
    (tmp_path / "part").mkdir()
    (tmp_path / "tells.py").write_text(
        "import os, sys, traceback\nprint(__file__, sys.path[0], os.open(os.devnull, os.O_RDONLY))\n"
        "try: 1 / 0\nexcept ZeroDivisionError: traceback.print_exc(file=sys.stdout)\n"
    )
    alone = subprocess.run([sys.executable, path], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert command(path, cwd=tmp_path).stdout == alone.stdout != ""


@pytest.mark.parametrize("format", ["text", "html"])
def test_modules_of_the_programs_that_have_names_of_pythons(format, tmp_path):
    for name in ("statistics", "html", "decimal", "fractions", "resource"):
        (tmp_path / f"{name}.py").write_text(f"mine = {name!r}\n")
    said = "import statistics, html, resource; print(statistics.mine, html.mine, resource.mine)\n"
    (tmp_path / "named.py").write_text(LEAK + said)
    ran = command("--format", format, "--fail", "named.py", cwd=tmp_path)
    assert ran.returncode == 3 and ran.stdout.endswith("\nstatistics html resource\n")
    assert ("list of" in ran.stderr and "</html>" in ran.stderr) if format == "html" else "1 finding" in ran.stderr


def test_what_is_imported_late_is_pytorchs_or_the_watchs_own():
    """A program's folder comes before Python's library by then."""
    late = ("_session", "_render", "_page", "_snapshot", "_live", "_live_socket")
    source = (
        f"import sys; sys.path.insert(0, {str(runner.HERE)!r}); import runner; runner.load()\n"
        "import plimsoll_watch._command, torch; known = {name.split('.')[0] for name in sys.modules}\n"
        f"import {', '.join('plimsoll_watch.' + name for name in late)}\n"
        "print(sorted({name.split('.')[0] for name in sys.modules} - known))\n"
    )
    ran = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=120)
    assert ran.stdout == "[]\n", ran.stderr


def test_a_program_marks_its_steps_without_plimsoll(tmp_path):
    program = tmp_path / "marks.py"
    program.write_text(
        "import torch, plimsoll.watch\nfrom plimsoll.watch import step\nkept = []\n"
        "for _ in range(30):\n    kept.append(torch.ones(64, 64)); plimsoll.watch.step()\n"
    )
    ran = command("--format", "json", str(program))
    assert ran.returncode == 0 and json.loads(ran.stderr)["counted_by"] == "watch.step()"


OWN = """
import torch, plimsoll.watch
wanted, kept = [], []
for _ in range(100):
    torch.ones(64, 64); plimsoll.watch.step()
with plimsoll.watch(exclude=["wanted"]) as watched:
    try:
        plimsoll.watch().__enter__()
    except RuntimeError as error:
        print(error)
    for _ in range(30):
        wanted.append(torch.ones(64, 64)); kept.append(torch.ones(64, 64)); plimsoll.watch.step()
print([(finding.held_by, finding.is_verdict) for finding in watched.verdicts])
kept.clear()
try:
    plimsoll.watch.assert_no_leak(lambda: kept.append(torch.ones(8, 64)))
except plimsoll.watch.LeakError:
    print("it leaks")
kept.clear()
for _ in range(30):
    plimsoll.watch.step()
"""


def test_a_watch_of_the_programs_own_joins_the_commands(tmp_path):
    program = tmp_path / "own.py"
    program.write_text(OWN)
    ran = command("--format", "json", "--fail", str(program))
    assert ran.stdout.splitlines() == [
        "watch: another watch is on; leave it first, there is one at a time",
        "[('global `kept` -> list of 30', True)]",
        "it leaks",
    ], ran.stderr
    assert ran.returncode == 0 and json.loads(ran.stderr)["findings"] == []


def test_a_block_that_is_begun_again_and_again_hides_no_leak(tmp_path):
    program = tmp_path / "blocks.py"
    program.write_text(
        "import torch, plimsoll.watch\nkept = []\nfor _ in range(40):\n    with plimsoll.watch():\n        for _ in range(5):\n"
        "            kept.append(torch.ones(64, 64)); plimsoll.watch.step()\n"
    )
    ran = command("--format", "json", "--fail", str(program))
    (finding,) = json.loads(ran.stderr)["findings"]
    assert ran.returncode == 3 and finding["held_by"].startswith("global `kept` -> list of")


def test_what_a_watch_of_the_programs_own_has_told_stays_so(tmp_path):
    program = tmp_path / "told.py"
    program.write_text(
        "import torch, plimsoll.watch\nkept = []\nwith plimsoll.watch() as watched:\n"
        "    for _ in range(30):\n        torch.ones(64, 64); plimsoll.watch.step()\nbefore = watched.text(), watched.json()\n"
        "for _ in range(40):\n    kept.append(torch.ones(64, 64)); plimsoll.watch.step()\n"
        "print(before == (watched.text(), watched.json()), watched.verdicts)\n"
    )
    ran = command("--fail", str(program))
    assert ran.returncode == 3 and ran.stdout == "True []\n"


def test_a_forked_process_has_a_watch_of_its_own(tmp_path):
    program = tmp_path / "forks.py"
    program.write_text(
        "import os, sys, torch, plimsoll.watch\nkept = []\nplimsoll.watch.step()\nif os.fork() == 0:\n"
        "    plimsoll.watch.step()\n    try:\n        plimsoll.watch.assert_no_leak(lambda: kept.append(torch.ones(64, 64)))\n"
        "    except plimsoll.watch.LeakError:\n        sys.exit(5)\nprint(os.wait()[1] >> 8)\n"
    )
    ran = command("--format", "json", str(program))
    assert ran.stdout == "5\n" and json.loads(ran.stderr)["steps"] == 1
