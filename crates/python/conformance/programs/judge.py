"""Whether losses are equal. The first ten steps must be within 1e-4 of PyTorch's, relative; the largest difference of the first fifty
within twice the largest between PyTorch's own runs with one and two threads, or within `FLOOR` where that is less.

Small programs give the same bits with any number of threads, and then threads say nothing of how far rounding takes them apart: a
program that feeds its results back (an agent, a network and its adversary) makes much of the last bit. For those that pass the first
bound only, PyTorch runs as on older processors, without AVX-512 and without AVX, and they count as `rounding` if they are within
twice the largest difference to those runs."""

from __future__ import annotations

import math
from typing import Any

# Steps that run, and those that are judged.
RUN, JUDGED, FIRST = 60, 50, 10
NEAR = 1e-4
FLOOR = 1e-6
# Names of PyTorch's runs as on older processors.
OLDER = ["older pytorch", "oldest pytorch"]


def off(one: float, other: float) -> float:
    """How far a loss is from PyTorch's, relative to it."""
    if one == other or (math.isnan(one) and math.isnan(other)):
        return 0.0
    if not (math.isfinite(one) and math.isfinite(other)):
        return math.inf
    return abs(one - other) / abs(other) if other else math.inf


def most(losses: list[float], truth: list[float], count: int) -> float:
    return max((off(*pair) for pair in zip(losses[:count], truth[:count])), default=0.0)


def judged(row: dict[str, Any]) -> dict[str, Any]:
    """The verdict on a row that has its runs, with the figures it rests on: `equal`, `rounding`, `apart` (losses that differ by more),
    `failed` (it does not run here) or `not compared` (it does not run on PyTorch)."""
    for name, whose in (("first", "PyTorch: "), ("second", "PyTorch with two threads: "), ("here", "")):
        if name not in row or row[name]["status"] == "failed":
            return {"verdict": "not compared" if whose else "failed", "reason": whose + row[name]["words"]}
    first, second, here = (row[name]["losses"] for name in ("first", "second", "here"))
    count = JUDGED * row["passes"]
    figures = {
        "ten": most(here, first, FIRST * row["passes"]),
        "fifty": most(here, first, count),
        "spread": most(second, first, count),
    }
    if len(first) < count:
        return figures | {"verdict": "not compared", "reason": f"the program makes only {len(first)} backward passes"}
    if not len(first) == len(second) == len(here):
        return figures | {"verdict": "apart", "reason": f"{len(here)} backward passes, PyTorch {len(first)}"}
    if figures["ten"] > NEAR:
        return figures | {"verdict": "apart", "reason": f"off by {figures['ten']:.1e} in the first ten steps"}
    if figures["fifty"] <= max(2 * figures["spread"], FLOOR):
        return figures | {"verdict": "equal", "reason": ""}
    if old := [row[name]["losses"] for name in OLDER if name in row]:
        figures["older"] = max(most(losses, first, count) for losses in old)
        if figures["fifty"] <= 2 * figures["older"]:
            return figures | {"verdict": "rounding", "reason": ""}
    return figures | {"verdict": "apart", "reason": "off by more than twice PyTorch's own runs"}
