"""How near a result must be to PyTorch's: the tolerances of its own tests (`torch.testing.assert_close`).

Below float64 two right programs may round apart by more, where sums cancel or functions are steep. What is off then is compared
with PyTorch's own module run in float64 on the same values: it is right if it is near that, element by element or by the largest
of the tensor, or no further from it than twice PyTorch's own result. How many tensors were judged so is counted, and told in the
table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import translate

# Relative and absolute, as `torch.testing.assert_close` has them.
DTYPES = {
    "float32": (1.3e-6, 1e-5),
    "float64": (1e-7, 1e-7),
    "bfloat16": (1.6e-2, 1e-5),
    "float16": (1e-3, 1e-5),
}


class Wrong(Exception):
    """Something is not as in PyTorch."""


def same_tensors(
    what: str, expected: list[Any], found: list[Any], truth: Callable[[], list[torch.Tensor]], row: dict[str, Any]
) -> None:
    """Fails if a tensor is not PyTorch's; counts in the row those that had to be compared with the truth."""
    if len(expected) != len(found):
        raise Wrong(f"{len(found)} tensors of {what}, in PyTorch {len(expected)}")
    for at, (left, right) in enumerate(zip(expected, found, strict=True)):
        left, right = left.detach(), translate.to_torch(right)
        if left.dtype != right.dtype or left.shape != right.shape:
            kinds = [f"{one.dtype} {tuple(one.shape)}" for one in (right, left)]
            raise Wrong(f"{what} {at} is {kinds[0]}, in PyTorch {kinds[1]}")
        if is_near(left, right):
            continue
        off = float((left.double() - right.double()).abs().nan_to_num().max())
        if left.dtype == torch.float64 or not left.is_floating_point():
            raise Wrong(f"{what} {at} is off by {off:.3g}")
        check_no_worse(f"{what} {at}", truth()[at].detach(), left, right)
        count(row, left.dtype)


def count(row: dict[str, Any], dtype: torch.dtype) -> None:
    """One more tensor of that dtype was compared with the truth."""
    name = str(dtype).removeprefix("torch.")
    counts = row.setdefault("by_truth", {})
    counts[name] = counts.get(name, 0) + 1


def is_near(left: torch.Tensor, right: torch.Tensor) -> bool:
    if not left.is_floating_point():
        return torch.equal(left, right)
    relative, absolute = DTYPES[str(left.dtype).removeprefix("torch.")]
    # In float64, so that the comparison does not round.
    return torch.allclose(right.double(), left.double(), rtol=relative, atol=absolute, equal_nan=True)


def check_no_worse(what: str, truth: torch.Tensor, theirs: torch.Tensor, here: torch.Tensor) -> None:
    """Fails if a rounded result is neither near the truth nor about as near to it as PyTorch's."""
    if is_near(truth.to(theirs.dtype), here):
        return
    finite = truth.isfinite() & theirs.isfinite()
    if not torch.equal(finite, truth.isfinite() & here.isfinite()):
        raise Wrong(f"{what} is finite elsewhere than PyTorch's")
    off = [float((one.double() - truth)[finite].abs().max()) for one in (theirs, here)]
    largest = float(truth[finite].abs().max())
    relative, _ = DTYPES[str(theirs.dtype).removeprefix("torch.")]
    if not off[1] <= max(2 * off[0], relative * largest):
        raise Wrong(f"{what} is off by {off[1]:.3g} from float64, PyTorch's by {off[0]:.3g}")
