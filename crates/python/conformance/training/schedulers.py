"""Every scheduler over 60 steps beside PyTorch: rates, momenta and states, chained and resumed."""

from __future__ import annotations

import warnings
from typing import Any

import plimsoll
import torch
from entry import _check
from nearness import Wrong
from schedules import CLOSED, STEPS, made, step

COLUMNS = ["rates", "state", "resumed"]


def judged(name: str) -> dict[str, Any]:
    """The row of one scheduler, over SGD and Adam."""
    row: dict[str, Any] = {"name": name, "samples": 0, "passed": {}, "failures": []}
    for kind in ("SGD", "Adam"):
        row["samples"] += 1
        _check(row, "rates", kind, _same_rates, name, kind, False)
        _check(row, "resumed", kind, _same_rates, name, kind, True)
        _check(row, "state", kind, _same_state, name, kind)
        if name in CLOSED:
            _check(row, "rates", f"{kind} closed", _same_closed, name, kind)
    return row


def _same_rates(name: str, kind: str, resumes: bool) -> None:
    pairs = [made(place, name, kind) for place in (torch, plimsoll)]
    for at in range(STEPS):
        if resumes and at == STEPS // 2:
            optimizer, scheduler = made(plimsoll, name, kind)
            scheduler.load_state_dict(pairs[1][1].state_dict())
            optimizer.load_state_dict(pairs[1][0].state_dict())
            pairs[1] = (optimizer, scheduler)
        expected, found = (step(*pair, at) for pair in pairs)
        if any(abs(left - right) > 1e-15 for left, right in zip(expected, found, strict=True)):
            raise Wrong(f"at step {at} {found}, in PyTorch {expected}")


def _same_state(name: str, kind: str) -> None:
    expected, found = (made(place, name, kind)[1].state_dict() for place in (torch, plimsoll))
    ours = {key for key in found if not key.startswith("_scale")}
    theirs = {key for key in expected if not key.startswith("_scale")}
    if ours != theirs:
        raise Wrong(f"keys are {sorted(ours)}, in PyTorch {sorted(theirs)}")


def _same_closed(name: str, kind: str) -> None:
    pairs = [made(place, name, kind) for place in (torch, plimsoll)]
    for epoch in (4, 1, 9, 40, 17):
        found = []
        for optimizer, scheduler in pairs:
            optimizer.step()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                scheduler.step(epoch)
            found.append(scheduler.get_last_lr())
        if any(abs(left - right) > 1e-15 for left, right in zip(*found, strict=True)):
            raise Wrong(f"at epoch {epoch} {found[1]}, in PyTorch {found[0]}")
