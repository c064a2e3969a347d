"""What Plimsoll does with a script: `plimsoll run` in a process of its own, judged by what it prints, as a user would. In the
same way the interpreter's own PyTorch is asked on a machine with a card."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
# A script, in its own folder beside the prelude's.
SCRIPT = "block.py"
# A script that takes longer hangs: the longest takes seconds.
LONGEST_S = 300
FRAME = re.compile(rf'^ *File "[^"]*{re.escape(SCRIPT)}", line (\d+)', re.MULTILINE)
WARNING = re.compile(rf"^[^\n]*{re.escape(SCRIPT)}:(\d+): (\w+Warning): ([^\n]*)", re.MULTILINE)


def answer(text: str, where: str, pytorch: bool = False) -> dict[str, Any]:
    """What the script raised and where, deprecations, and what it printed.

    On the CPU there is no stand-in for a card, as PyTorch has none, unless the script calls functions that need one.
    """
    card = [] if where == "cuda" or "torch.cuda" in text else ["--device-memory", "0"]
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, SCRIPT).write_text(text)
        # The script's folder is another than this one.
        paths = [HERE, *(Path(path).resolve() for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path)]
        settings = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))}
        command = [sys.executable, *([] if pytorch else ["-m", "plimsoll", "run", *card]), SCRIPT]
        try:
            ran = subprocess.run(command, cwd=folder, env=settings, capture_output=True, text=True, timeout=LONGEST_S)  # noqa: S603
        except subprocess.TimeoutExpired as late:
            told = (late.stderr or b"").decode(errors="replace")
            return {"raises": ["no end", None], "deprecated": [], "prints": "", "stderr": told}
    deprecated = {(int(line), kind) for line, kind, words in WARNING.findall(ran.stderr) if "deprecated" in words}
    return {
        "raises": raised(ran.returncode, ran.stderr), "deprecated": sorted(deprecated), "prints": ran.stdout,
        "stderr": ran.stderr,
    }  # fmt: skip


def raised(status: int, told: str) -> list[Any] | None:
    """The class and the script's last line of the last traceback; nothing if the script ended well."""
    if status == 0:
        return None
    tail = told.rpartition("Traceback (most recent call last):\n")[2]
    kinds = re.findall(r"^(?:\w+\.)*(\w+)(?::|$)", tail, re.MULTILINE)
    lines = FRAME.findall(tail)
    return [kinds[0] if kinds else f"status {status}", int(lines[-1]) if lines else None]


def difference(theirs: dict[str, Any], ours: dict[str, Any], where: str) -> str | None:
    """What is not as PyTorch has it."""
    if ours["raises"] != theirs[where]:
        last = ours["stderr"].strip().splitlines()[-1:] if ours["raises"] else []
        return f"raises {_said(ours['raises'])}, PyTorch {_said(theirs[where])} {' '.join(last)}".rstrip()
    if [list(one) for one in ours["deprecated"]] != [list(one) for one in theirs["deprecated"]]:
        return f"deprecations {ours['deprecated']}, PyTorch {theirs['deprecated']}"
    if "prints" in theirs and ours["prints"] != theirs["prints"]:
        return f"prints {ours['prints']!r}, PyTorch {theirs['prints']!r}"
    return None


def _said(raises: list[Any] | None) -> str:
    return "nothing" if raises is None else f"{raises[0]} at line {raises[1]}"
