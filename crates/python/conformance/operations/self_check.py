"""Whether the checks see what they must see: PyTorch is compared with itself under Plimsoll's name, a few operations of which are
broken on purpose (`stand_in`)."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

STAND_IN = Path(__file__).resolve().parent / "stand_in"

# What must come of each broken operation: the entry's status, and a check and kind of failure that are seen.
BROKEN = {
    "exp": ("wrong", "forward", "value"),
    "log": ("wrong", "forward", "dtype"),
    "sin": ("wrong", "gradient", "gradient"),
    "cos": ("wrong", "second gradient", "second gradient"),
    "neg": ("partial", "forward", "strides"),
    "transpose": ("partial", "forward", "view"),
    "tanh": ("partial", "forward", "raised"),
    "narrow": ("partial", "error", "not refused"),
    "amax": ("wrong", "out", "value"),
    "mul": ("wrong", "noncontiguous", "value"),
    "randn": ("wrong", "forward", "value"),
    "reciprocal": ("crashed", None, None),
    "sigmoid": ("late", None, None),
    "floor": ("absent", None, None),
}
# Entries of every family that are compared with themselves.
SOUND = ["add", "sum", "matmul", "sort", "cat", "__getitem__", "nn.functional.dropout", "nn.functional.batch_norm", "max reduction_with_dim", "to", "item"]


def mistakes(judge: Callable[[str, float], dict[str, Any]]) -> list[str]:
    """What the checks missed or imagined, in words; `judge` gives an entry's row within so many seconds."""
    found = []
    for name, (status, check, kind) in BROKEN.items():
        row = judge(name, 20.0)
        seen = any((failure["check"], failure["kind"]) == (check, kind) for failure in row["failures"])
        if row["status"] != status or (check is not None and not seen):
            found.append(f"{name} is {row['status']} and not {status}, or its {kind} was not seen: {row['reason']}")
    for name in SOUND:
        row = judge(name, 120.0)
        if row["status"] != "whole":
            found.append(f"{name} is {row['status']} though it is PyTorch's own: {row['reason']}")
    return found


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(STAND_IN)}
