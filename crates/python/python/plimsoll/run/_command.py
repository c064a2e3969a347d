"""The command: reads its options, runs the program with `torch` resolved to Plimsoll, and says to standard error where
its memory went. `_session.py` is what is noted on the way, `_report.py` what is said."""

from __future__ import annotations

import argparse
import os
import re
import sys
from typing import NoReturn

from ..watch._command import divide
from ..watch._program import Program
from . import _memory_viz

DEVICE_MEMORY = "8GiB"
_UNITS = {"": 1, "b": 1, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40}
_UNITS |= {"kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_WITH_VALUE = {"--snapshot", "--limit", "--device-memory", "--html"}


def size(text: str) -> int:
    """Bytes of `4GiB`, `512MiB` or `1000`."""
    read = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([a-zA-Z]*)", text.strip())
    unit = _UNITS.get(read.group(2).lower()) if read else None
    if read is None or unit is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no size: write it as 4GiB, 512MiB or a number of bytes")
    return int(float(read.group(1)) * unit)


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="plimsoll run",
        description="Run a PyTorch program unchanged on Plimsoll, and say where its memory went. The report goes to "
        "standard error; output and exit status are the program's own.",
        allow_abbrev=False,
    )
    parser.add_argument("--snapshot", metavar="FILE", help="write a snapshot with its history there, for `plimsoll view`")
    parser.add_argument("--html", metavar="FILE", help="write the report there as a page for the browser too")
    parser.add_argument("--limit", type=size, metavar="SIZE", help="the most that each device may reserve, as in 4GiB")
    parser.add_argument(
        "--device-memory",
        type=size,
        metavar="SIZE",
        default=DEVICE_MEMORY,
        help="without a GPU: the memory of the stand-in that answers as cuda, 0 for none (default: %(default)s)",
    )
    parser.add_argument(
        "--dry",
        action="store_true",
        help="use no memory and compute nothing, up to the first line that needs a value; gives the peak",
    )
    parser.add_argument("--live", action="store_true", help="let `plimsoll top` look at the program while it runs")
    parser.add_argument("-m", dest="module", metavar="MODULE", help="run a module as `python -m` does")
    parser.add_argument("program", nargs=argparse.REMAINDER, help="the program and its own arguments")
    ours, theirs = divide(arguments, _WITH_VALUE)
    options = parser.parse_args(ours)
    options.program = theirs
    if not options.module and not options.program:
        parser.error("name a program to run, or a module with -m")
    return options


def main(arguments: list[str]) -> NoReturn:
    """Runs the program and ends with its exit status."""
    options = _options(arguments)
    if options.module == _memory_viz.NAME:
        sys.exit(_memory_viz.main(options.program))
    from ._session import Session

    session = Session(options)
    program = Program(options.module, options.program, here=os.path.dirname(os.path.abspath(__file__)))

    def end(error: BaseException | None) -> None:
        session.end(error)
        if program.is_leaving:
            session.write()

    program.run(end)
    if session.stopped_at is not None:
        # A dry run goes no further, and that is no failure.
        program.forgive()
    program.leave(0, session.write)
