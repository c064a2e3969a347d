"""Schedulers as they are made and stepped, for PyTorch and for Plimsoll alike: `schedulers.py` compares both live, and recordings
(`golden.py`, `training_replay.py`) need only one of them."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

STEPS = 60


def _sequence(s: Any, o: Any) -> Any:
    parts = [s.ConstantLR(o, 0.1, 5), s.ExponentialLR(o, 0.9), s.CosineAnnealingLR(o, 7)]
    return s.SequentialLR(o, parts, milestones=[10, 30])


def _nested(s: Any, o: Any) -> Any:
    first = s.SequentialLR(o, [s.LinearLR(o, 0.2), s.StepLR(o, 4)], milestones=[6])
    return s.SequentialLR(o, [first, s.PolynomialLR(o, 20, 2.0)], milestones=[25])


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
    "SWALR": lambda s, o: s.SWALR(o, swa_lr=0.05, anneal_epochs=12),
    "SWALR at once": lambda s, o: s.SWALR(o, swa_lr=[0.05, 0.002], anneal_epochs=0, anneal_strategy="linear"),
}

# Takes an epoch too, by its closed form.
CLOSED = ["StepLR", "MultiStepLR", "ConstantLR", "LinearLR", "ExponentialLR", "PolynomialLR", "CosineAnnealingLR"]


def made(place: Any, name: str, kind: str) -> tuple[Any, Any]:
    params = [place.nn.Parameter(place.ones(2)) for _ in range(2)]
    groups = [{"params": [params[0]]}, {"params": [params[1]], "lr": 0.03}]
    options: dict[str, Any] = {"momentum": 0.9} if kind == "SGD" else {}
    optimizer = getattr(place.optim, kind)(groups, lr=0.1, **options)
    known = SimpleNamespace(**{**vars(place.optim.lr_scheduler), "SWALR": place.optim.swa_utils.SWALR})
    return optimizer, ENTRIES[name](known, optimizer)


def _measure(step: int) -> float:
    return 1.0 / (1 + step // 9) + 0.01 * (step % 3)


def step(optimizer: Any, scheduler: Any, at: int) -> list[float]:
    optimizer.step()
    if "Plateau" in type(scheduler).__name__:
        scheduler.step(_measure(at))
    else:
        scheduler.step()
    groups = optimizer.param_groups
    momenta = [group["momentum"] if "momentum" in group else group["betas"][0] for group in groups]
    return [*scheduler.get_last_lr(), *(group["lr"] for group in groups), *momenta]
