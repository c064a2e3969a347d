"""What grows and may be the program's purpose: predictions of a pass that learns nothing. It is a note then, and no finding."""

from __future__ import annotations

from typing import Any

from . import _kinds as kinds
from ._findings import REBUILT, Finding, is_of_graph
from ._holders import NAMED_KEYS
from ._steps import LOADER, OPTIMIZER, Steps


def may_be_meant(finding: Finding, steps: Steps) -> bool:
    """Whether a program that only predicts may gather this on purpose: the results of a pass, or one for each data set."""
    if steps.rank >= OPTIMIZER or steps.has_learnt:
        return False
    of_loader, is_one = steps.rank == LOADER, steps.epochs <= 1
    if finding.cause in REBUILT:
        return is_one
    if is_one:
        return _is_one_pass(finding, of_loader)
    # Of several passes: each leaves what is under one name, or the latest alone is left. Of what no window saw it is not known.
    passes = [(steps.pass_of(first), steps.pass_of(last)) for first, last in finding.steps_by_key]
    if not passes or any(first != last for first, last in passes):
        return False
    is_of_latest = all(steps.is_latest_pass(first) for first, _ in passes)
    return of_loader and _is_by_name(finding) or is_of_latest and _is_one_pass(finding, of_loader)


def _is_one_pass(finding: Finding, of_loader: bool) -> bool:
    """Values that a loop gathers in a list of its own, over one pass and without learning: that may be its
    purpose. Nobody gathers graphs on purpose. Over a loader, which tells that it is a pass, they may be gathered in lists by
    name, on an object, in pairs or as arrays. What a loop that only calls a module has so may be a server's cache."""
    ways = [step["how"] for step in finding.path]
    if finding.kind != kinds.VALUE or is_of_graph(finding.cause) or ways[:1] not in (["local"], ["global"]):
        return False
    return ways[1:] == ["entry"] or (of_loader and all(_is_gathering(step) for step in finding.path[1:]))


def _is_by_name(finding: Finding) -> bool:
    """What passes over loaders leave in a dictionary of a few names, a result for each data set, where nothing is learnt."""
    named = (step for step in finding.path if step["how"] == "entry" and step.get("of") == "dict")
    return finding.kind == kinds.VALUE and any(step.get("size", 0) <= NAMED_KEYS for step in named)


def _is_gathering(step: dict[str, Any]) -> bool:
    return step["how"] in ("item", "entry", "attribute") or (step["how"], step.get("of")) == ("inside", "ndarray")
