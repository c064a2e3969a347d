"""One call made with PyTorch and with Plimsoll, and what came of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from judge import Difference, Rules, brief, flat, same_results, unequal
from translate import Absent, Arguments


@dataclass
class Outcome:
    value: Any = None
    error: BaseException | None = None


def attempt(call: Callable[[], Any]) -> Outcome:
    try:
        return Outcome(value=call())
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - a panic is no Exception
        return Outcome(error=error)


def call_with(function: Callable[..., Any], values: tuple[Any, Any, Any], **more: Any) -> Any:
    first, args, kwargs = values
    return function(first, *args, **kwargs, **more)


def refusal(error: BaseException) -> Difference:
    """Why a call that PyTorch answers failed."""
    missing = isinstance(error, Absent) or (isinstance(error, AttributeError) and "has no attribute" in str(error))
    kind = "missing" if missing else "raised" if isinstance(error, Exception) else "panicked"
    return Difference(kind, f"{type(error).__name__}: {brief(error)}")


@dataclass
class Pair:
    """The same callable in both."""

    theirs: Callable[..., Any]
    ours: Callable[..., Any]

    def run(self, arguments: Arguments, rules: Rules) -> tuple[Any, Any] | None:
        """Both results, which agree; nothing if both refuse. Raises a `Difference`."""
        before = versions(arguments)
        theirs = attempt(lambda: call_with(self.theirs, arguments.theirs))
        ours = attempt(lambda: call_with(self.ours, arguments.ours))
        if not agree_to_refuse(theirs, ours):
            same_results(theirs.value, ours.value, arguments, rules)
            if rules.values and versions(arguments) != before:
                same_arguments(arguments, theirs.value, rules)
            return theirs.value, ours.value
        return None


def agree_to_refuse(theirs: Outcome, ours: Outcome) -> bool:
    if theirs.error is not None and ours.error is None:
        raise Difference("accepted", f"PyTorch refuses: {brief(theirs.error)}")
    if theirs.error is None and ours.error is not None:
        raise refusal(ours.error)
    return theirs.error is not None


def versions(arguments: Arguments) -> list[tuple[int, int]]:
    return [(theirs._version, ours._version) for theirs, ours in arguments.tensors]


def same_arguments(arguments: Arguments, results: Any, rules: Rules) -> None:
    """What a call wrote to its arguments, other than those that it returns."""
    returned = {id(result) for result in flat(results)}
    for place, (theirs, ours) in enumerate(arguments.tensors):
        if id(theirs) in returned:
            continue
        if tuple(theirs.shape) != tuple(ours.shape):
            raise Difference("shape", f"an argument is left of shape {list(ours.shape)}, PyTorch's {list(theirs.shape)}")
        truth = None if rules.left is None else (lambda place=place: rules.left()[place])
        words = unequal(theirs, ours, truth, looser=4.0)
        if words:
            raise Difference("value", f"what it leaves in an argument: {words}")


def in_double(sample: Any, moved: int | None = None) -> Any:
    """The sample with its floating tensors as float64, each element moved by half a last bit up or down in the way
    that has a number."""
    signs = torch.Generator().manual_seed(moved or 0)

    def widened(leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor) or not leaf.is_floating_point():
            return leaf
        if moved is None:
            return leaf.double()
        sign = 2.0 * torch.randint(0, 2, leaf.shape, generator=signs) - 1.0
        return leaf.double() * (1.0 + 0.5 * torch.finfo(leaf.dtype).eps * sign)

    return sample.transform(widened)
