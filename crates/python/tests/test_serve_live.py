"""`plimsoll.serve_live`: what `plimsoll top` is told of a program on Plimsoll, and who may ask."""

import json
import os
import socket
import stat
import subprocess
import sys
import textwrap

import pytest

import plimsoll as pm

pytestmark = pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="needs Unix sockets")


@pytest.fixture
def runtime(tmp_path_factory, monkeypatch):
    # Short: a socket's path has at most about a hundred bytes.
    folder = tmp_path_factory.mktemp("run")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    return folder


class Asking:
    def __init__(self, path):
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(20)
        self._socket.connect(path)
        self._file = self._socket.makefile("rwb")

    def figures(self, request=b'{"live": 1, "ask": "figures"}'):
        self._file.write(request + b"\n")
        self._file.flush()
        return json.loads(self._file.readline())


def part(figures, by):
    return next({row["name"]: row for row in part["rows"]} for part in figures["parts"] if part["by"] == by)


def test_figures_are_the_ledgers(runtime):
    with pm.serve_live("a program") as server:
        facts = os.stat(server.path)
        assert stat.S_IMODE(facts.st_mode) == 0o600 and facts.st_uid == os.geteuid()
        assert stat.S_IMODE(os.stat(os.path.dirname(server.path)).st_mode) == 0o700
        asking = Asking(server.path)
        # Of all devices: some that other tests opened may hold something.
        before = sum(row["bytes"] for row in part(asking.figures(), "kind").values())
        kept = pm.zeros(1 << 20)
        line = sys._getframe().f_lineno - 1
        figures = asking.figures()
        assert figures["process"]["name"] == "a program" and figures["process"]["pid"] == os.getpid()
        cpu = next(level for level in figures["levels"] if level["name"] == "cpu")
        assert cpu["allocated_bytes"] == pm.memory_allocated()
        assert cpu["reserved_bytes"] == pm.memory_reserved()
        assert cpu["peak_bytes"] == pm.max_memory_allocated()
        assert sum(row["bytes"] for row in part(figures, "kind").values()) == before + (4 << 20)
        row = part(figures, "line")[f"{__file__}:{line}"]
        assert (row["bytes"], row["count"], row["what"]) == (4 << 20, 1, "zeros, temporary")
        del kept
        assert f"{__file__}:{line}" not in part(asking.figures(), "line")
        path = server.path
    assert server.path is None and not os.path.exists(path)


def test_growth_is_told_from_the_ends_of_steps(runtime):
    import time

    with pm.serve_live() as server:
        asking = Asking(server.path)
        asking.figures()
        kept = []
        for _ in range(6):
            kept.append(pm.zeros(1024))
            passing = pm.zeros(4096)  # noqa: F841 - replaced in every step
            pm.step()
            time.sleep(0.12)
        figures = asking.figures()
        lines = {name.rsplit(":", 1)[1]: row for name, row in part(figures, "line").items() if __file__ in name}
        growing = [row["growth_per_step"] for row in lines.values()]
        assert sorted(growing) == [0.0, 4096.0]
        assert 0.1 < figures["step_seconds"] < 5
        cpu = next(level for level in figures["levels"] if level["name"] == "cpu")
        assert cpu["growth_per_step"] == 4096.0


def test_requests_that_are_none_are_told_so(runtime):
    with pm.serve_live() as server:
        assert "line of JSON" in Asking(server.path).figures(b"hello")["error"]
        assert "version 1" in Asking(server.path).figures(b'{"live": 7, "ask": "figures"}')["error"]
        with pytest.raises(OSError, match="serves them already"):
            pm.serve_live()


def test_a_folder_that_others_may_enter_is_passed_over(runtime):
    (runtime / "plimsoll").mkdir()
    (runtime / "plimsoll").chmod(0o777)
    with pm.serve_live() as server:
        assert not server.path.startswith(str(runtime))


def test_the_socket_goes_with_the_program_and_not_with_its_children(runtime):
    program = """
        import os, plimsoll as pm
        server = pm.serve_live()
        child = os.fork()
        if not child:
            server.close()
            os._exit(0)
        os.waitpid(child, 0)
        assert os.path.exists(server.path)
        print(server.path)
    """
    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=60, check=True
    )
    assert ran.stdout.strip().endswith(".sock") and not os.path.exists(ran.stdout.strip())


def test_a_program_under_run_can_be_looked_at(runtime, tmp_path):
    program = tmp_path / "trains.py"
    program.write_text(
        textwrap.dedent("""
        import sys, torch
        model = torch.nn.Linear(64, 64)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        def step():
            model(torch.randn(8, 64)).sum().backward()
            optimizer.step()
        for _ in range(3):
            step()
        print("ready", flush=True)
        sys.stdin.readline()
        """)
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "plimsoll", "run", "--live", str(program)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout.readline() == "ready\n"
    path = runtime / "plimsoll" / f"{process.pid}.sock"
    figures = Asking(str(path)).figures()
    assert figures["process"]["name"] == "trains.py" and figures["step"] == 3
    assert part(figures, "kind")["parameter"]["bytes"] == 64 * 64 * 4 + 512
    shown = subprocess.run(
        [sys.executable, "-m", "plimsoll", "top", str(process.pid)], capture_output=True, text=True, timeout=60
    )
    assert shown.stdout.startswith(f"trains.py  pid {process.pid}  Plimsoll") and shown.returncode == 0, shown.stderr
    process.communicate("\n", timeout=60)
    assert process.returncode == 0 and not path.exists()
