"""Every scheduler over 60 steps beside PyTorch: rates, momenta and states, chained and resumed."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import plimsoll
import torch
from entry import Wrong, _check

COLUMNS = ["rates", "state", "resumed"]

STEPS = 60


def _sequence(s: Any, o: Any) -> Any:
    parts = [s.ConstantLR(o, 0.1, 5), s.ExponentialLR(o, 0.9), s.CosineAnnealingLR(o, 7)]
    return s.SequentialLR(o, parts, milestones=[10, 30])


def _nested(s: Any, o: Any) -> Any:
    first = s.SequentialLR(o, [s.LinearLR(o, 0.2), s.StepLR(o, 4)], milestones=[6])
    return s.SequentialLR(o, [first, s.PolynomialLR(o, 20, 2.0)], milestones=[25])


def _swa(s: Any, o: Any) -> Any:
    place = torch.optim if s is torch.optim.lr_scheduler else plimsoll.optim
    return place.swa_utils.SWALR(o, swa_lr=0.05, anneal_epochs=12)


def _swa_linear(s: Any, o: Any) -> Any:
    place = torch.optim if s is torch.optim.lr_scheduler else plimsoll.optim
    return place.swa_utils.SWALR(o, swa_lr=[0.05, 0.002], anneal_epochs=0, anneal_strategy="linear")


Maker = Callable[[Any, Any], Any]

# By name, with the module of schedulers and the optimizer.
ENTRIES: dict[str, Maker] = {
    "LambdaLR": lambda s, o: s.LambdaLR(o, [lambda e: 0.95**e, lambda e: 1 / (1 + e)]),
    "MultiplicativeLR": lambda s, o: s.MultiplicativeLR(o, lambda e: 0.98),
    "StepLR": lambda s, o: s.StepLR(o, 7, 0.3),
    "MultiStepLR": lambda s, o: s.MultiStepLR(o, [3, 9, 9, 40]),
    "ConstantLR": lambda s, o: s.ConstantLR(o, 0.25, 9),
    "LinearLR": lambda s, o: s.LinearLR(o, 0.1, 0.8, 17),
    "ExponentialLR": lambda s, o: s.ExponentialLR(o, 0.93),
    "PolynomialLR": lambda s, o: s.PolynomialLR(o, 31, 1.7),
    "CosineAnnealingLR": lambda s, o: s.CosineAnnealingLR(o, 11, 1e-3),
    "CosineAnnealingWarmRestarts": lambda s, o: s.CosineAnnealingWarmRestarts(o, 5, 2, 1e-4),
    "CosineAnnealingWarmRestarts 1": lambda s, o: s.CosineAnnealingWarmRestarts(o, 8),
    "CyclicLR triangular": lambda s, o: s.CyclicLR(o, 0.01, 0.1, 5),
    "CyclicLR triangular2": lambda s, o: s.CyclicLR(o, 0.01, [0.1, 0.3], 5, 3, mode="triangular2"),
    "CyclicLR exp_range": lambda s, o: s.CyclicLR(o, 0.01, 0.1, 6, mode="exp_range", gamma=0.97),
    "CyclicLR own": lambda s, o: s.CyclicLR(o, 0.01, 0.1, 6, scale_fn=lambda x: 1 / x, cycle_momentum=False),
    "OneCycleLR": lambda s, o: s.OneCycleLR(o, 0.2, total_steps=61),
    "OneCycleLR three": lambda s, o: s.OneCycleLR(
        o, [0.2, 0.4], epochs=8, steps_per_epoch=8, anneal_strategy="linear", three_phase=True
    ),
    "ReduceLROnPlateau": lambda s, o: s.ReduceLROnPlateau(o, patience=3, factor=0.5, cooldown=2, min_lr=1e-3),
    "ReduceLROnPlateau max": lambda s, o: s.ReduceLROnPlateau(
        o, "max", patience=2, threshold=0.01, threshold_mode="abs", min_lr=[1e-3, 2e-4]
    ),
    "SequentialLR": _sequence,
    "SequentialLR nested": _nested,
    "ChainedScheduler": lambda s, o: s.ChainedScheduler([s.ConstantLR(o, 0.1, 5), s.ExponentialLR(o, 0.9)]),
    "SWALR": _swa,
    "SWALR at once": _swa_linear,
}

# Takes an epoch too, by its closed form.
CLOSED = ["StepLR", "MultiStepLR", "ConstantLR", "LinearLR", "ExponentialLR", "PolynomialLR", "CosineAnnealingLR"]


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


def _made(place: Any, name: str, kind: str) -> tuple[Any, Any]:
    params = [place.nn.Parameter(place.ones(2)) for _ in range(2)]
    groups = [{"params": [params[0]]}, {"params": [params[1]], "lr": 0.03}]
    options: dict[str, Any] = {"momentum": 0.9} if kind == "SGD" else {}
    optimizer = getattr(place.optim, kind)(groups, lr=0.1, **options)
    return optimizer, ENTRIES[name](place.optim.lr_scheduler, optimizer)


def _measure(step: int) -> float:
    return 1.0 / (1 + step // 9) + 0.01 * (step % 3)


def _step(optimizer: Any, scheduler: Any, at: int) -> list[float]:
    optimizer.step()
    if "Plateau" in type(scheduler).__name__:
        scheduler.step(_measure(at))
    else:
        scheduler.step()
    groups = optimizer.param_groups
    momenta = [group["momentum"] if "momentum" in group else group["betas"][0] for group in groups]
    return [*scheduler.get_last_lr(), *(group["lr"] for group in groups), *momenta]


def _same_rates(name: str, kind: str, resumes: bool) -> None:
    pairs = [_made(place, name, kind) for place in (torch, plimsoll)]
    for at in range(STEPS):
        if resumes and at == STEPS // 2:
            optimizer, scheduler = _made(plimsoll, name, kind)
            scheduler.load_state_dict(pairs[1][1].state_dict())
            optimizer.load_state_dict(pairs[1][0].state_dict())
            pairs[1] = (optimizer, scheduler)
        expected, found = (_step(*pair, at) for pair in pairs)
        if any(abs(left - right) > 1e-15 for left, right in zip(expected, found, strict=True)):
            raise Wrong(f"at step {at} {found}, in PyTorch {expected}")


def _same_state(name: str, kind: str) -> None:
    expected, found = (_made(place, name, kind)[1].state_dict() for place in (torch, plimsoll))
    ours = {key for key in found if not key.startswith("_scale")}
    theirs = {key for key in expected if not key.startswith("_scale")}
    if ours != theirs:
        raise Wrong(f"keys are {sorted(ours)}, in PyTorch {sorted(theirs)}")


def _same_closed(name: str, kind: str) -> None:
    pairs = [_made(place, name, kind) for place in (torch, plimsoll)]
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
