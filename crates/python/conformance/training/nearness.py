"""How near a result must be to PyTorch's: the tolerances of its own tests (`torch.testing.assert_close`).

Below float64 two right programs may round apart by more, where sums cancel or functions have kinks. What is off then is compared
with PyTorch's own module run in float64 on the same values: it is right if it is near that, or no further from it than PyTorch's
own result. One draw of values can say no to a right program by chance (a rounding that takes a ReLU's argument across 0), so a
module that is further off in its draw is judged over many (`draws.py`). How many tensors were judged so is counted, and told in
the table."""

from __future__ import annotations

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


class Further(Wrong):
    """A result below float64 is further from the truth than PyTorch's: by a defect, or by chance."""


def same(given: Any, row: dict[str, Any]) -> None:
    """Fails if a tensor is not PyTorch's; counts in the row those that had to be compared with the truth."""
    left, right = given.theirs, translate.to_torch(given.here)
    if left.dtype != right.dtype or left.shape != right.shape:
        kinds = [f"{one.dtype} {tuple(one.shape)}" for one in (right, left)]
        raise Wrong(f"{given.name} is {kinds[0]}, in PyTorch {kinds[1]}")
    if is_near(left, right):
        return
    if left.dtype == torch.float64 or not left.is_floating_point():
        off = float((left.double() - right.double()).abs().nan_to_num().max())
        raise Wrong(f"{given.name} is off by {off:.3g}")
    check_no_worse(given.name, given.truth(), left, right)
    count(row, "by_truth", left.dtype)


def count(row: dict[str, Any], how: str, dtype: torch.dtype) -> None:
    """One more tensor of that dtype was judged so."""
    name = str(dtype).removeprefix("torch.")
    counts = row.setdefault(how, {})
    counts[name] = counts.get(name, 0) + 1


def is_near(left: torch.Tensor, right: torch.Tensor) -> bool:
    if not left.is_floating_point():
        return torch.equal(left, right)
    relative, absolute = DTYPES[str(left.dtype).removeprefix("torch.")]
    # In float64, so that the comparison does not round.
    return torch.allclose(right.double(), left.double(), rtol=relative, atol=absolute, equal_nan=True)


def check_no_worse(what: str, truth: torch.Tensor, theirs: torch.Tensor, here: torch.Tensor, times: float = 1.0) -> None:
    """Fails if a rounded result is neither near the truth nor as near to it as so many times PyTorch's."""
    if is_near(truth.to(theirs.dtype), here):
        return
    finite = truth.isfinite() & theirs.isfinite()
    if not torch.equal(finite, truth.isfinite() & here.isfinite()):
        raise Wrong(f"{what} is finite elsewhere than PyTorch's")
    off = [float((one.double() - truth)[finite].abs().max()) for one in (theirs, here)]
    if not off[1] <= times * off[0]:
        raise Further(f"{what} is off by {off[1]:.3g} from float64, PyTorch's by {off[0]:.3g}")
