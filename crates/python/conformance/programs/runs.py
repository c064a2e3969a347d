"""Starts runs of programs: on Plimsoll each in a process that begins with it, on PyTorch each in one that is forked from a process that
has PyTorch imported (`worker.py`)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import judge
from listed import Program

WORKER = Path(__file__).resolve().parent / "worker.py"
# Sets have one order; threads that wait do not take turns from those that work, on a machine that is not this run's alone.
SETTINGS = {"PYTHONHASHSEED": "0", "PYTHONFAULTHANDLER": "1", "OMP_WAIT_POLICY": "passive"}
# PyTorch and its libraries as on older processors: without AVX-512, and without AVX.
OLDER = {
    "older pytorch": {"ATEN_CPU_CAPABILITY": "avx2", "MKL_ENABLE_INSTRUCTIONS": "AVX2", "ONEDNN_MAX_CPU_ISA": "AVX2"},
    "oldest pytorch": {"ATEN_CPU_CAPABILITY": "default", "MKL_ENABLE_INSTRUCTIONS": "SSE4_2", "ONEDNN_MAX_CPU_ISA": "SSE41"},
}


class Sides:
    """The folder of repositories, and the processes that wait with PyTorch."""

    def __init__(self, folder: Path, seconds: float) -> None:
        self.folder, self.seconds = folder, seconds
        self._servers: dict[str, subprocess.Popen[str]] = {}

    def carry_out(self, side: str, order: Path) -> int | None:
        """Runs an order. The process's exit status; none if it took too long."""
        if side == "plimsoll":
            with order.with_name("log").open("w") as log:
                try:
                    command = [sys.executable, str(WORKER), str(order)]
                    streams: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log}
                    return subprocess.run(command, **streams, timeout=self.seconds, env=os.environ | SETTINGS).returncode
                except subprocess.TimeoutExpired:
                    return None
        server = self._servers.get(side)
        if server is None:
            environment = os.environ | SETTINGS | OLDER.get(side, {})
            command = [sys.executable, str(WORKER), "--serve"]
            server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
            self._servers[side] = server
        assert server.stdin is not None and server.stdout is not None
        print(json.dumps({"order": str(order), "seconds": self.seconds}), file=server.stdin, flush=True)
        answer = server.stdout.readline()
        if not answer:
            raise SystemExit(f"the process with PyTorch ended with {server.wait()}")
        return json.loads(answer)

    def close(self) -> None:
        for server in self._servers.values():
            assert server.stdin is not None
            server.stdin.close()
            server.wait()


class Runs:
    """The runs of one program: the first writes its draws down, the others replay them."""

    def __init__(self, program: Program, sides: Sides, place: Path) -> None:
        self.program, self.sides, self.place = program, sides, place

    def run(self, side: str, threads: int) -> dict[str, Any]:
        """One run, in a copy of the repository."""
        program, copy, draws = self.program, self.place / "repository", self.place / "draws"
        shutil.copytree(self.sides.folder / program.folder, copy, ignore=shutil.ignore_patterns(".git"))
        order, row = self.place / "order.json", self.place / "row.json"
        row.unlink(missing_ok=True)
        told = {"side": side, "threads": threads, "draws": str(draws), "replay": draws.exists(), "program": str(copy / program.path)}
        told |= {"arguments": program.arguments.split(), "paths": [str(copy / path) for path in program.paths], "data": program.data}
        told |= {"passes": judge.RUN * program.passes, "unused": program.unused}
        order.write_text(json.dumps(told))
        try:
            status = self.sides.carry_out(side, order)
        finally:
            shutil.rmtree(copy)
        if status is None:
            return _failed(f"took more than {self.sides.seconds:.0f} s")
        if not row.exists():
            lines = [line for line in (self.place / "log").read_text(errors="replace").splitlines() if line.strip()]
            return _failed(f"the process ended with {status}: {lines[-1] if lines else ''}")
        return json.loads(row.read_text())


def _failed(words: str) -> dict[str, Any]:
    return {"status": "failed", "words": words, "trace": "", "losses": [], "draws": 0, "seconds": 0.0}
