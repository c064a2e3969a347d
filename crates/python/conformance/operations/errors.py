"""Error inputs: arguments that PyTorch refuses, which must be refused with an error of the same class."""

from __future__ import annotations

from typing import Any

from calls import Pair, attempt, call_with
from judge import Difference, brief
from translate import Arguments


def same_error(pair: Pair, error_input: Any) -> None:
    """Raises a `Difference`."""
    arguments = Arguments(error_input.sample_input, requires_grad=True)
    theirs = attempt(lambda: call_with(pair.theirs, arguments.theirs)).error
    if theirs is None:
        return
    ours = attempt(lambda: call_with(pair.ours, arguments.ours)).error
    if ours is None:
        raise Difference("not refused", f"not refused; PyTorch: {type(theirs).__name__}: {brief(theirs)}")
    declared = error_input.error_type
    if not isinstance(ours, declared if isinstance(theirs, declared) else type(theirs)):
        words = f"{type(ours).__name__} ({brief(ours)}), PyTorch's {type(theirs).__name__} ({brief(theirs)})"
        raise Difference("class of error", words)
