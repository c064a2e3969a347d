"""First and second gradients in float64, beside PyTorch's own, with the same random cotangents."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import plimsoll
import torch

from calls import attempt
from judge import Difference, brief, flat, unequal
from translate import to_ours, to_torch


class Both:
    """Tensors of PyTorch's graph and the same ones of ours."""

    def __init__(self, pairs: list[tuple[torch.Tensor, Any]]) -> None:
        self.theirs = [pair[0] for pair in pairs]
        self.ours = [pair[1] for pair in pairs]

    def __add__(self, other: Both) -> Both:
        return Both([*zip(self.theirs + other.theirs, self.ours + other.ours, strict=True)])


@dataclass
class First:
    """First gradients that agree, and what they are functions of."""

    gradients: Both
    inputs: Both


Process = Callable[..., Any]


def same_gradients(results: tuple[Any, Any], process: tuple[Process, Process], leaves: Both, second: bool, looser: float) -> First | None:
    """Compares first gradients; those that can be differentiated again are returned if `second`. Raises a `Difference`."""
    outputs = differentiable(results, process)
    if not outputs.theirs or not leaves.theirs:
        return None
    cotangents = random_like(outputs, second)
    gradients = gradients_of(outputs, leaves, cotangents, "gradient", second, looser)
    return None if gradients is None else First(gradients, leaves + cotangents)


def same_second_gradients(first: First, looser: float) -> None:
    """Raises a `Difference`."""
    gradients_of(first.gradients, first.inputs, random_like(first.gradients, False), "second gradient", False, 10.0 * looser)


def differentiable(results: tuple[Any, Any], process: tuple[Process, Process]) -> Both:
    """The results that have a history, of which the sample may name a part."""
    theirs = attempt(lambda: flat(process[0](results[0])))
    ours = attempt(lambda: flat(process[1](results[1])))
    if theirs.error is not None:
        return Both([])
    if ours.error is not None:
        raise Difference("raised", f"the sample's own processing of the result: {type(ours.error).__name__}: {brief(ours.error)}")
    pairs = []
    for their, our in zip(theirs.value, ours.value, strict=True):
        if not isinstance(their, torch.Tensor):
            continue
        if their.requires_grad != our.requires_grad:
            raise Difference("history", f"requires_grad is {our.requires_grad}, PyTorch's {their.requires_grad}")
        if their.requires_grad:
            pairs.append((their, our))
    return Both(pairs)


def random_like(tensors: Both, requires_grad: bool) -> Both:
    theirs = [torch.randn(tensor.shape, dtype=tensor.dtype) for tensor in tensors.theirs]
    pairs = [(tensor, to_ours(tensor)) for tensor in theirs]
    return Both([(their.requires_grad_(requires_grad), our.requires_grad_(requires_grad)) for their, our in pairs])


def gradients_of(outputs: Both, inputs: Both, cotangents: Both, kind: str, again: bool, looser: float) -> Both | None:
    """The gradients by both; nothing if both refuse. A gradient that is missing is as good as zeros."""
    theirs = attempt(lambda: gradient(torch.autograd.grad, outputs.theirs, inputs.theirs, cotangents.theirs, again))
    ours = attempt(lambda: gradient(plimsoll.grad, outputs.ours, inputs.ours, cotangents.ours, again))
    if theirs.error is not None:
        return None
    if ours.error is not None:
        raise Difference(f"no {kind}", f"{kind}: {type(ours.error).__name__}: {brief(ours.error)}")
    pairs = []
    for place, (their, our) in enumerate(zip(theirs.value, ours.value, strict=True)):
        words = different(their, our, looser)
        if words:
            raise Difference(kind, f"{kind} by tensor {place}: {words}")
        if not again or their is None or not their.requires_grad:
            continue
        if our is not None and our.requires_grad:
            pairs.append((their, our))
        elif bool(their.detach().any()):
            raise Difference("no second gradient", f"{kind} by tensor {place} has no history, PyTorch's has")
    return Both(pairs) if pairs else None


def gradient(grad: Callable[..., Any], outputs: list[Any], inputs: list[Any], cotangents: list[Any], again: bool) -> list[Any]:
    return list(grad(outputs, inputs, cotangents, create_graph=again, allow_unused=True))


def different(theirs: torch.Tensor | None, ours: Any, looser: float) -> str | None:
    if theirs is None and ours is None:
        return None
    if ours is None:
        assert theirs is not None
        return "none, PyTorch's is not zero" if bool(theirs.detach().any()) else None
    if theirs is None:
        return "not zero, PyTorch has none" if bool(to_torch(ours).any()) else None
    if tuple(theirs.shape) != tuple(ours.shape):
        return f"shape {list(ours.shape)}, PyTorch's {list(theirs.shape)}"
    return unequal(theirs, ours, looser=looser)
