"""The other forms of an operation: in place, and with `out=`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch

from calls import Outcome, Pair, agree_to_refuse, attempt, call_with
from judge import Difference, Rules, flat, same_results
from translate import DTYPES, Arguments, to_ours


def in_place(pair: Pair, sample: Any, rules: Rules) -> None:
    """The form that writes to its first argument: its result is that argument. Raises a `Difference`."""
    arguments = Arguments(sample, requires_grad=False)
    results = pair.run(arguments, rules)
    if results is None or results[0] is not arguments.theirs[0]:
        return
    if results[1] is not arguments.ours[0]:
        raise Difference("class", "the result is not the tensor that was written")


@dataclass
class Target:
    """What is given as `out`, made from one of PyTorch's results."""

    name: str
    make: Callable[[torch.Tensor], torch.Tensor]


@dataclass
class Given:
    """What is known of a tensor given as `out` before the call."""

    their_place: int
    our_place: int
    strides: tuple[int, ...]
    # It is of another dtype, to which the result can be converted.
    safe: bool


def garbage(tensor: torch.Tensor) -> torch.Tensor:
    """Fills with what no operation should leave or read."""
    if tensor.dtype == torch.bool:
        return tensor.fill_(True)
    return tensor.fill_(float("nan") if tensor.is_floating_point() else 99)


def other_dtype(result: torch.Tensor) -> torch.Tensor:
    return garbage(torch.empty(result.shape, dtype=torch.int64 if result.is_floating_point() else torch.float32))


def spread(result: torch.Tensor) -> torch.Tensor:
    wide = garbage(torch.empty([2 * size for size in result.shape], dtype=result.dtype))
    return wide[tuple(slice(None, None, 2) for _ in result.shape)]


# The first two are tried with every sample, the others with the first few.
TARGETS = [
    Target("right", lambda result: garbage(torch.empty_strided(result.shape, result.stride(), dtype=result.dtype))),
    Target("empty", lambda result: torch.empty(0, dtype=result.dtype)),
    Target("larger", lambda result: garbage(torch.empty([2, *result.shape], dtype=result.dtype))),
    Target("strided", spread),
    Target("of another dtype", other_dtype),
]


def targets(index: int) -> Iterator[Target]:
    yield from TARGETS if index < 4 else TARGETS[:2]


def into_out(pair: Pair, sample: Any, target: Target, rules: Rules) -> None:
    """The form with `out=`. Raises a `Difference`."""
    arguments = Arguments(sample, requires_grad=False)
    plain = attempt(lambda: call_with(pair.theirs, arguments.theirs))
    if plain.error is not None or not only_tensors(plain.value):
        return
    results = [plain.value] if isinstance(plain.value, torch.Tensor) else list(plain.value)
    if any(result.dtype not in DTYPES or overlaps(result) for result in results):
        return
    if target.name == "larger" and any(result.numel() == 0 for result in results):
        # Nothing twice is nothing.
        return
    # A call may write to its arguments (running statistics), so that these are not used again.
    arguments = Arguments(sample, requires_grad=False)
    their_outs = [target.make(result) for result in results]
    our_outs = [laid_out_alike(out) for out in their_outs]
    given = [
        Given(their.data_ptr(), our.data_ptr(), their.stride(), their.dtype != result.dtype and torch.can_cast(result.dtype, their.dtype))
        for their, our, result in zip(their_outs, our_outs, results, strict=True)
    ]
    alone = isinstance(plain.value, torch.Tensor)
    theirs = attempt(lambda: call_with(pair.theirs, arguments.theirs, out=their_outs[0] if alone else tuple(their_outs)))
    ours = attempt(lambda: call_with(pair.ours, arguments.ours, out=our_outs[0] if alone else tuple(our_outs)))
    if target.name == "strided" and rules.values and ours.error is None and misses(theirs, their_outs, results):
        theirs, their_outs = plain, results
    judge_outs(target, (theirs, ours), (their_outs, our_outs), given, rules)


def misses(outcome: Outcome, outs: list[torch.Tensor], results: list[torch.Tensor]) -> bool:
    """Whether PyTorch refuses a strided target or writes it as if it were dense, as a few of its kernels do: then the plain
    call says what belongs there."""
    if outcome.error is not None:
        return True
    pairs = zip(outs, results, strict=True)
    return any(not torch.allclose(out.double(), result.double(), rtol=1e-2, atol=1e-3, equal_nan=True) for out, result in pairs)


def judge_outs(
    target: Target, outcomes: tuple[Outcome, Outcome], outs: tuple[list[torch.Tensor], list[Any]], given: list[Given], rules: Rules
) -> None:
    if outcomes[0].error is not None and all(one.safe for one in given):
        # PyTorch refuses some dtypes that the result could be converted to, and takes others.
        return
    # PyTorch gives some results that are strided anew strides of its own choice.
    kept = all(one.strides == out.stride() for one, out in zip(given, outs[0], strict=True))
    try:
        if agree_to_refuse(*outcomes):
            return
        truth, moved = (None if of is None else as_list(of) for of in (rules.truth, rules.moved))
        same_results(*outs, None, replace(rules, strides=False, every_stride=kept, truth=truth, moved=moved))
    except Difference as difference:
        raise Difference(difference.kind, f"out= {target.name}: {difference.words}") from None
    returned = [flat(outcome.value) for outcome in outcomes]
    if any(result is out for result, out in zip(returned[0], outs[0], strict=False)):
        if len(returned[1]) != len(outs[1]) or any(result is not out for result, out in zip(returned[1], outs[1], strict=True)):
            raise Difference("class", f"out= {target.name}: the result is not the tensor that was given")
    for one, their, our in zip(given, *outs, strict=True):
        if their.data_ptr() == one.their_place and their.numel() > 0 and our.data_ptr() != one.our_place:
            raise Difference("view", f"out= {target.name}: the result lies in other memory than was given")


def as_list(truth: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *way: flat(truth(*way))


def only_tensors(value: Any) -> bool:
    items = value if isinstance(value, (list, tuple)) else [value]
    return bool(items) and all(isinstance(item, torch.Tensor) for item in items)


def overlaps(tensor: torch.Tensor) -> bool:
    return any(stride == 0 and size > 1 for size, stride in zip(tensor.shape, tensor.stride(), strict=True))


def laid_out_alike(tensor: torch.Tensor) -> Any:
    """Our copy with the same strides."""
    if tensor.is_contiguous():
        return to_ours(tensor)
    flat = torch.empty(0, dtype=tensor.dtype).set_(tensor.untyped_storage())
    return to_ours(flat).as_strided(list(tensor.shape), list(tensor.stride()), tensor.storage_offset())
