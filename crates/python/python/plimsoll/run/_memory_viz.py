"""`plimsoll run -m torch.cuda._memory_viz …`: what PyTorch's viewer of snapshots is asked for, answered by `plimsoll
report`, `view` and `diff`."""

from __future__ import annotations

import argparse

from .._plimsoll import _command

NAME = "torch.cuda._memory_viz"
# What PyTorch's viewer can be asked for, and the command that answers it.
_REPORTS = ("memory", "segments", "segsum", "stats", "trace")
_PICTURES = ("segment_plot", "trace_plot")


def main(arguments: list[str]) -> int:
    """Answers as the command does; gives its exit status."""
    parser = argparse.ArgumentParser(prog=f"plimsoll run -m {NAME}", allow_abbrev=False)
    parser.add_argument("action", choices=[*_REPORTS, *_PICTURES, "compare"])
    parser.add_argument("files", nargs="+", metavar="FILE", help="a snapshot, or two for compare")
    parser.add_argument("-o", "--output", metavar="FILE", help="where a picture goes")
    asked = parser.parse_args(arguments)
    if len(asked.files) != (2 if asked.action == "compare" else 1):
        parser.error("compare takes two snapshots, everything else one")
    if asked.action == "compare":
        return _command(["plimsoll", "diff", *asked.files])
    if asked.action in _PICTURES:
        return _command(["plimsoll", "view", *asked.files, *(["-o", asked.output] if asked.output else [])])
    return _command(["plimsoll", "report", *asked.files])
