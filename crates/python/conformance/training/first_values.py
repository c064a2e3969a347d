"""The distribution of fresh parameters: constants, bounds and deviations over many constructions."""

from __future__ import annotations

from typing import Any

import pairs
import torch
import translate

ENOUGH = 1500
MOST = 100


def compare(info: Any) -> None:
    """Fails if a fresh parameter of the entry's first samples is drawn in another way than PyTorch's."""
    samples = info.module_inputs_func(info, device="cpu", dtype=torch.float32, requires_grad=False, training=True)
    for sample in samples[:4]:
        drawn = _drawn(info, sample)
        for name, (theirs, here) in drawn.items():
            _same(name, torch.cat(theirs), torch.cat(here))


def _drawn(info: Any, sample: Any) -> dict[str, tuple[list[torch.Tensor], list[torch.Tensor]]]:
    drawn: dict[str, tuple[list[torch.Tensor], list[torch.Tensor]]] = {}
    for _ in range(MOST):
        theirs, here = pairs.built(info, sample, torch.float32, True)
        if pairs.is_lazy(theirs):
            pairs.give_shapes(sample, theirs, here)
        own = dict(here.named_parameters())
        for name, param in theirs.named_parameters():
            lists = drawn.setdefault(name, ([], []))
            lists[0].append(param.detach().flatten())
            lists[1].append(translate.to_torch(own[name]).flatten())
        if all(sum(part.numel() for part in lists[0]) >= ENOUGH for lists in drawn.values()):
            break
    return drawn


def _same(name: str, theirs: torch.Tensor, here: torch.Tensor) -> None:
    if theirs.numel() < 2:
        return
    if float(theirs.std()) == 0 or float(here.std()) == 0:
        if not torch.equal(theirs, here):
            raise ValueError(f"{name} begins with {here[0]}, in PyTorch with {theirs[0]}")
        return
    # How far two samples of this many draws may be apart, with a chance of less than one in a million.
    slack = 6 * (2 / theirs.numel()) ** 0.5
    for what, left, right in (
        ("deviation", theirs.std(), here.std()),
        ("largest value", theirs.abs().max(), here.abs().max()),
    ):
        slack_here = slack if what == "deviation" else 0.1 + 2 * slack
        if abs(float(right) - float(left)) > slack_here * float(left):
            raise ValueError(f"the {what} of {name}'s first values is {right:.4g}, in PyTorch {left:.4g}")
    if abs(float(theirs.mean()) - float(here.mean())) > slack * float(theirs.std()):
        raise ValueError(f"the mean of {name}'s first values is {here.mean():.4g}, in PyTorch {theirs.mean():.4g}")
