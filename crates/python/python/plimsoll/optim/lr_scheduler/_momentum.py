"""The momentum that cyclic schedulers move against the rates: `momentum`, or the first of `betas`."""

from __future__ import annotations

from typing import Any

from ..optimizer import Optimizer
from ._scheduler import one_each


def uses_beta1(optimizer: Optimizer) -> bool:
    """Whether the momentum is the first of `betas`; refuses optimizers without any."""
    if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
        raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
    return "betas" in optimizer.defaults


def set_momentum(group: dict[str, Any], value: float, beta1: bool) -> None:
    """Changes a group's momentum."""
    if beta1:
        group["betas"] = (value, *group["betas"][1:])
    else:
        group["momentum"] = value


def first_momenta(
    optimizer: Optimizer, base: Any, most: Any, beta1: bool, starts: bool
) -> tuple[list[Any], list[Any]]:
    """The least and the largest momentum of each group; they begin with the largest."""
    least, largest = one_each("base_momentum", optimizer, base), one_each("max_momentum", optimizer, most)
    if starts:
        for low, high, group in zip(least, largest, optimizer.param_groups, strict=True):
            set_momentum(group, high, beta1)
            group["max_momentum"], group["base_momentum"] = high, low
    return least, largest
