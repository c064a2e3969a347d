"""Whether losses are equal. The first ten steps within 1e-4 of PyTorch's, relative; the first fifty within twice what PyTorch's own runs
with one and two threads differ by at most, or `FLOOR` where they differ by less."""

from __future__ import annotations

import math
from typing import Any

# Steps that run, and those that are judged.
RUN, JUDGED, FIRST = 60, 50, 10
NEAR = 1e-4
FLOOR = 1e-6


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
    """The verdict on a row that has its runs, with the figures it rests on."""
    for name, whose in (("first", "PyTorch"), ("second", "PyTorch with two threads"), ("here", "")):
        if row[name]["status"] == "failed":
            # A program that PyTorch itself does not run says nothing.
            verdict = "failed" if name == "here" else "not compared"
            return {"verdict": verdict, "reason": f"{whose}: {row[name]['words']}" if whose else row[name]["words"]}
    first, second, here = (row[name]["losses"] for name in ("first", "second", "here"))
    passes = row["passes"]
    figures = {
        "steps": len(first) // passes,
        "ten": most(here, first, FIRST * passes),
        "fifty": most(here, first, JUDGED * passes),
        "spread": most(second, first, JUDGED * passes),
    }
    figures["bound"] = max(2 * figures["spread"], FLOOR)
    if len(first) < JUDGED * passes:
        return figures | {"verdict": "not compared", "reason": f"the program makes only {figures['steps']} steps"}
    if not len(first) == len(second) == len(here):
        return figures | {"verdict": "failed", "reason": f"{len(here)} backward passes, PyTorch {len(first)}"}
    if figures["ten"] > NEAR:
        return figures | {"verdict": "failed", "reason": f"off by {figures['ten']:.1e} in the first ten steps"}
    if figures["fifty"] > figures["bound"]:
        reason = f"off by {figures['fifty']:.1e} in fifty steps, PyTorch's own runs by {figures['spread']:.1e}"
        return figures | {"verdict": "failed", "reason": reason}
    return figures | {"verdict": "equal", "reason": ""}
