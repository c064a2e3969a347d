"""Random entries: the same distribution as PyTorch's, over as many calls as make some thousand numbers.

All numbers of a sample are compared as draws from one distribution (Kolmogorov and Smirnov's statistic, which covers mean,
spread and support at once), by mean and variance, and the mean at each place by itself, since places may have distributions of
their own. So are first gradients."""

from __future__ import annotations

import math
from typing import Any

import plimsoll
import torch

from calls import Pair, agree_to_refuse, attempt, call_with
from gradients import Both, different, differentiable, gradient
from judge import Difference, Rules, brief, flat, same_results
from translate import Arguments, to_torch

# A right operation fails once in a million samples.
CHANCE = 1e-6
NUMBERS, MOST_CALLS, FEWEST_CALLS = 3000, 100, 12


def same_distribution(pair: Pair, sample: Any, requires_grad: bool, drawn_together: bool) -> None:
    """Raises a `Difference`. Numbers that are `drawn_together` (a channel that is dropped whole) tell as much as one."""
    torch.manual_seed(0)
    plimsoll.manual_seed(0)
    first = one_call(pair, sample, requires_grad)
    if first is None:
        return
    numbers = max((theirs.numel() for theirs, _ in first), default=0)
    calls = min(MOST_CALLS, max(FEWEST_CALLS, math.ceil(NUMBERS / numbers))) if numbers else 1
    if drawn_together and numbers:
        calls = MOST_CALLS
    rows = [first] + [row for _ in range(calls - 1) if (row := one_call(pair, sample, requires_grad)) is not None]
    for place in range(len(first)):
        theirs = torch.stack([row[place][0].flatten() for row in rows])
        ours = torch.stack([row[place][1].flatten() for row in rows])
        if theirs.numel() > 0:
            same_numbers(theirs, ours, calls if drawn_together else theirs.numel())


def one_call(pair: Pair, sample: Any, requires_grad: bool) -> list[tuple[torch.Tensor, torch.Tensor]] | None:
    """The results of both as float64, and their gradients; nothing if both refuse."""
    arguments = Arguments(sample, requires_grad)
    theirs = attempt(lambda: call_with(pair.theirs, arguments.theirs))
    ours = attempt(lambda: call_with(pair.ours, arguments.ours))
    if agree_to_refuse(theirs, ours):
        return None
    same_results(theirs.value, ours.value, arguments, Rules(values=False))
    tensors = zip(flat(theirs.value), flat(ours.value), strict=True)
    found = [(their.detach().double(), to_torch(our).double()) for their, our in tensors if isinstance(their, torch.Tensor)]
    return found + (gradients((theirs.value, ours.value), Both(arguments.leaves)) if requires_grad else [])


def gradients(results: tuple[Any, Any], leaves: Both) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Of the sum of all results."""
    outputs = differentiable(results, (lambda x: x, lambda x: x))
    if not outputs.theirs or not leaves.theirs:
        return []
    their_ones = [torch.ones_like(output) for output in outputs.theirs]
    our_ones = [plimsoll.ones_like(output.detach()) for output in outputs.ours]
    theirs = attempt(lambda: gradient(torch.autograd.grad, outputs.theirs, leaves.theirs, their_ones, False))
    ours = attempt(lambda: gradient(plimsoll.grad, outputs.ours, leaves.ours, our_ones, False))
    if theirs.error is not None:
        return []
    if ours.error is not None:
        raise Difference("no gradient", f"gradient: {type(ours.error).__name__}: {brief(ours.error)}")
    found = []
    for their, our in zip(theirs.value, ours.value, strict=True):
        if their is None or our is None:
            words = different(their, our, 1.0)
            if words:
                raise Difference("gradient", words)
        else:
            found.append((their, to_torch(our)))
    return found


def same_numbers(theirs: torch.Tensor, ours: torch.Tensor, draws: int) -> None:
    """Compares numbers by calls and places."""
    apart = distance(theirs.flatten(), ours.flatten())
    if theirs.numel() < 2:
        return
    if apart > math.sqrt(-math.log(CHANCE / 2.0) / draws):
        words = f"mean {ours.mean():.4g} and spread {ours.std():.4g}, PyTorch's {theirs.mean():.4g} and {theirs.std():.4g}"
        raise Difference("value", f"another distribution (distance {apart:.3f}): {words}")
    pairs = zip(moments(theirs, draws), moments(ours, draws), strict=True)
    for name, ((their, their_error), (our, our_error)) in zip(("mean", "variance"), pairs, strict=True):
        if abs(their - our) > 7.0 * math.hypot(their_error, our_error) + 1e-3 * abs(their):
            raise Difference("value", f"another distribution: {name} {our:.4g}, PyTorch's {their:.4g}")
    calls = theirs.shape[0]
    if calls >= 50:
        spread = ((theirs.var(0) + ours.var(0)) / calls).sqrt()
        means = theirs.mean(0), ours.mean(0)
        far = (means[0] - means[1]).abs() > 7.0 * spread + 1e-2 * (1.0 + means[0].abs())
        if bool(far.any()):
            place = int(far.nonzero()[0])
            words = f"mean {float(means[1][place]):.4g}, PyTorch's {float(means[0][place]):.4g}"
            raise Difference("value", f"another distribution at place {place}: {words}")


def moments(numbers: torch.Tensor, draws: int) -> list[tuple[float, float]]:
    """Mean and variance, each with its standard error."""
    apart = (numbers - numbers.mean()).square()
    variance = float(apart.mean())
    return [(float(numbers.mean()), math.sqrt(variance / draws)), (variance, math.sqrt(float(apart.var()) / draws))]


def distance(first: torch.Tensor, second: torch.Tensor) -> float:
    """The largest difference between the two cumulative distributions."""
    first, second = first.nan_to_num().sort().values, second.nan_to_num().sort().values
    at = torch.cat([first, second])
    below = [torch.searchsorted(numbers, at, right=True) / numbers.numel() for numbers in (first, second)]
    return float((below[0] - below[1]).abs().max())
