"""Whether Plimsoll's results are PyTorch's: class, shape, dtype, strides, shared memory and values.

Strides are compared where PyTorch's result shares memory with an argument, and where the entry is elementwise (its layout
follows its operands') and PyTorch's result is dense; along dimensions of more than one element, the others being arbitrary.
Values are compared within PyTorch's own tolerances for its tests, which are wider for float64 where an entry says so (Bessel's
functions, whose values PyTorch has to seven places). A result of float32 or less that misses them is compared with PyTorch's own in
float64 as well: it may be twice as far from that as PyTorch's is, at each element if the entry is elementwise, at the worst one
otherwise (sums have errors of the size of their terms). If it is not elementwise, it may also be twice as far as the answer in
float64 moves when the arguments move by half a last bit: no more is known of the arguments."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import plimsoll
import torch

from translate import DTYPES, TORCH_DTYPES, Arguments, to_torch

# Relative and absolute, as in torch.testing.
TOLERANCES = {
    torch.float16: (1e-3, 1e-5),
    torch.bfloat16: (1.6e-2, 1e-5),
    torch.float32: (1.3e-6, 1e-5),
    torch.float64: (1e-7, 1e-7),
    torch.complex64: (1.3e-6, 1e-5),
    torch.complex128: (1e-7, 1e-7),
}
# Kinds of difference that make an entry wrong; any other leaves it partial.
WRONG = {"value", "shape", "dtype", "gradient", "second gradient"}


@dataclass
class Difference(Exception):
    """The first thing that differs: its kind, and what it is in words."""

    kind: str
    words: str


@dataclass
class Invariants:
    """What all right answers have in common, and how far from each other these may be, relative to the largest element."""

    of: Callable[[list[torch.Tensor]], list[torch.Tensor]]
    apart: float
    # In float64.
    apart_double: float = 1e-9


@dataclass
class Rules:
    """What is compared beyond class, shape and dtype."""

    values: bool = True
    strides: bool = False
    elementwise: bool = False
    # Strides are part of what was asked for.
    every_stride: bool = False
    # What is compared of the results, where they are one of several right answers.
    invariants: Invariants | None = None
    # Whether indices that are not PyTorch's name equal elements.
    ties: Callable[[torch.Tensor, torch.Tensor], bool] | None = None
    # PyTorch's answer in float64, where that exists.
    truth: Callable[[], Any] | None = None
    # The same for arguments that moved by half a last bit, in one of many ways.
    moved: Callable[[int], Any] | None = None
    # How many times wider than usual the entry's own tolerances of float64 are.
    looser: float = 1.0
    # What PyTorch leaves in the arguments in float64.
    left: Callable[[], list[torch.Tensor]] | None = None


def flat(value: Any) -> list[Any]:
    """The leaves of a result; a shape is a tuple of numbers."""
    if isinstance(value, (list, tuple)):
        return [leaf for item in value for leaf in flat(item)]
    return [value]


def brief(value: Any) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= 160 else text[:157] + "..."


def same_results(theirs: Any, ours: Any, arguments: Arguments | None, rules: Rules) -> None:
    """Raises a `Difference`."""
    same_class(theirs, ours)
    if rules.invariants is not None and rules.values:
        same_invariants(theirs, ours, rules.invariants)
        rules = replace(rules, values=False)
    for place, (their, our) in enumerate(zip(flat(theirs), flat(ours), strict=True)):
        if isinstance(their, torch.Tensor):
            same_tensor(place, their, our, arguments, rules)
        elif rules.values:
            same_constant(their, our)


def same_invariants(theirs: Any, ours: Any, invariants: Invariants) -> None:
    there = invariants.of([result.detach().double() for result in theirs])
    here = invariants.of([to_torch(result).double() for result in ours])
    apart = invariants.apart if theirs[0].dtype != torch.float64 else invariants.apart_double
    for their, our in zip(there, here, strict=True):
        bound = apart * (1.0 + their.abs().nan_to_num().amax() if their.numel() else 1.0)
        # What is not near is far: a NaN beside a number too.
        far = ~((their - our).abs() <= bound) & ~(their.isnan() & our.isnan())
        if bool(far.any()):
            raise Difference("value", f"what the results determine: {first_difference(their, our, far)}")


def same_class(theirs: Any, ours: Any) -> None:
    if isinstance(theirs, torch.Tensor):
        if not isinstance(ours, plimsoll.Tensor):
            raise Difference("class", f"the result is a {type(ours).__name__}, PyTorch's a tensor")
    elif isinstance(theirs, (list, tuple)):
        wanted = list if isinstance(theirs, list) else tuple
        if not isinstance(ours, wanted):
            raise Difference("class", f"the result is a {type(ours).__name__}, PyTorch's a {wanted.__name__}")
        if len(theirs) != len(ours):
            raise Difference("class", f"{len(ours)} results, PyTorch gives {len(theirs)}")
        for name in field_names(theirs):
            if not hasattr(ours, name):
                raise Difference("class", f"the result has no field {name}")
        for their, our in zip(theirs, ours, strict=True):
            same_class(their, our)


def field_names(results: Any) -> tuple[str, ...]:
    """The names of the fields of one of `torch.return_types`."""
    return type(results).__match_args__ if type(results).__module__ == "torch.return_types" else ()


def same_constant(theirs: Any, ours: Any) -> None:
    if isinstance(theirs, torch.dtype):
        theirs = DTYPES.get(theirs)
    if isinstance(theirs, torch.Size) and isinstance(ours, tuple):
        theirs, ours = tuple(theirs), tuple(ours)
    if type(theirs) is not type(ours):
        raise Difference("class", f"the result is a {type(ours).__name__}, PyTorch's a {type(theirs).__name__}")
    both_nan = isinstance(theirs, float) and math.isnan(theirs) and math.isnan(ours)
    close = isinstance(theirs, float) and math.isclose(theirs, ours, rel_tol=1e-5)
    if not (theirs == ours or both_nan or close):
        raise Difference("value", f"{brief(ours)}, PyTorch gives {brief(theirs)}")


def same_tensor(place: int, theirs: torch.Tensor, ours: Any, arguments: Arguments | None, rules: Rules) -> None:
    which = f"result {place}: " if place else ""
    if tuple(theirs.shape) != tuple(ours.shape):
        raise Difference("shape", f"{which}shape {list(ours.shape)}, PyTorch's {list(theirs.shape)}")
    if theirs.layout != torch.strided:
        raise Difference("class", f"{which}PyTorch's result is sparse")
    if TORCH_DTYPES.get(ours.dtype) != theirs.dtype:
        raise Difference("dtype", f"{which}{ours.dtype}, PyTorch's {theirs.dtype}")
    if rules.values:
        truth, moved = (None if of is None else (lambda *way, of=of: flat(of(*way))[place]) for of in (rules.truth, rules.moved))
        looser = rules.looser if theirs.dtype == torch.float64 else 1.0
        words = unequal(theirs, ours, truth, looser, rules.elementwise, moved)
        if words and not (rules.ties and theirs.dtype == torch.int64 and rules.ties(theirs, to_torch(ours))):
            raise Difference("value", which + words)
    shared = arguments is not None and same_sharing(which, theirs, ours, arguments)
    dense = rules.elementwise and torch.ops.aten.is_non_overlapping_and_dense(theirs)
    if (rules.every_stride or rules.strides and (shared or dense)) and theirs.numel() > 0:
        for size, their, our in zip(theirs.shape, theirs.stride(), ours.stride(), strict=True):
            if size > 1 and their != our:
                raise Difference("strides", f"{which}strides {list(ours.stride())}, PyTorch's {list(theirs.stride())}")


def same_sharing(which: str, theirs: torch.Tensor, ours: Any, arguments: Arguments) -> bool:
    """Whether PyTorch's result shares memory with an argument; ours must do the same, at the same place."""
    if theirs.numel() == 0:
        return False
    shared = False
    for their_argument, our_argument in arguments.tensors:
        if their_argument.numel() == 0:
            continue
        if their_argument.untyped_storage().data_ptr() == theirs.untyped_storage().data_ptr():
            shared = True
            apart = theirs.data_ptr() - their_argument.data_ptr()
            if ours.data_ptr() - our_argument.data_ptr() != apart:
                raise Difference("view", f"{which}PyTorch's result shares memory with an argument, this one does not")
        elif ours.data_ptr() == our_argument.data_ptr():
            raise Difference("view", f"{which}shares memory with an argument, PyTorch's result does not")
    return shared


def unequal(
    theirs: torch.Tensor,
    ours: Any,
    truth: Callable[[], Any] | None = None,
    looser: float = 1.0,
    elementwise: bool = False,
    moved: Callable[[int], Any] | None = None,
) -> str | None:
    """What differs between the elements, in words."""
    theirs, here = theirs.detach(), to_torch(ours)
    if torch.equal(theirs, here):
        return None
    if theirs.dtype not in TOLERANCES:
        return first_difference(theirs, here, theirs != here)
    relative, absolute = TOLERANCES[theirs.dtype]
    widest = torch.complex128 if theirs.is_complex() else torch.float64
    wide, here_wide = theirs.to(widest), here.to(widest)
    close = torch.isclose(here_wide, wide, rtol=relative * looser, atol=absolute * looser, equal_nan=True)
    if bool(close.all()):
        return None
    if truth is not None and theirs.dtype not in (torch.float64, torch.complex128):
        step = torch.finfo(theirs.dtype).eps
        if as_near(wide, here_wide, truth, step, elementwise) or not elementwise and moves_as_far(here_wide, truth, moved):
            return None
    return first_difference(theirs, here, ~close)


def as_near(theirs: torch.Tensor, ours: torch.Tensor, truth: Callable[[], Any], step: float, elementwise: bool) -> bool:
    """Whether our rounded result is about as near to the true one as PyTorch's, up to a relative `step`."""
    try:
        true = truth().detach().to(theirs.dtype)
    except Exception:  # noqa: BLE001 - the entry has no float64, or takes no other dtype: no second opinion
        return False
    if true.shape != theirs.shape:
        return False
    # PyTorch's float16 convolutions leave NaN at some places in some runs: the true answer stands for those.
    theirs = torch.where(theirs.isnan() & true.isfinite(), true, theirs)
    if not torch.equal(theirs.isfinite(), ours.isfinite()):
        return False
    finite = theirs.isfinite()
    if not torch.equal(theirs[~finite].nan_to_num(), ours[~finite].nan_to_num()):
        return False
    theirs, ours, true = theirs[finite], ours[finite], true[finite]
    if true.numel() == 0:
        return True
    ours_off, theirs_off = (ours - true).abs(), (theirs - true).abs()
    if elementwise:
        return bool((ours_off <= torch.maximum(2.0 * theirs_off, step * true.abs())).all())
    return bool(ours_off.max() <= torch.maximum(2.0 * theirs_off.max(), step * true.abs().max()))


def moves_as_far(ours: torch.Tensor, truth: Callable[[], Any], moved: Callable[[int], Any] | None) -> bool:
    """Whether the true result moves half as far as ours is off when the arguments move by half a last bit, in one of four ways."""
    if moved is None:
        return False
    try:
        true, *beside = (one.detach().to(ours.dtype) for one in (truth(), *map(moved, range(4))))
    except Exception:  # noqa: BLE001 - no second opinion
        return False
    if true.shape != ours.shape or not all(bool(one.isfinite().all()) for one in (true, ours, *beside)):
        return False
    return bool((ours - true).abs().max() <= 2.0 * max((one - true).abs().max() for one in beside))


def first_difference(theirs: torch.Tensor, ours: torch.Tensor, where: torch.Tensor) -> str:
    count = int(where.sum())
    place = where.nonzero()[0].tolist()
    their, our = theirs[tuple(place)].item(), ours[tuple(place)].item()
    return f"{our!r} at {place}, PyTorch's {their!r} ({count} of {theirs.numel()} elements)"
