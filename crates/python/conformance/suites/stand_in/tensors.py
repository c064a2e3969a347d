"""`make_tensor`: tensors of random values between two bounds, as PyTorch documents it."""

from __future__ import annotations

import math
from typing import Any

import torch


def make_tensor(
    *shape: Any,
    dtype: Any,
    device: Any,
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: Any = None,
) -> Any:
    """Uniform between `low` and `high`: by default -9 to 9, for whole numbers to 9 inclusive, for unsigned ones and booleans from 0."""
    sizes = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], (list, tuple)) else shape
    is_complex = str(dtype).rpartition(".")[2].startswith("complex")
    if noncontiguous and math.prod(sizes) > 1:
        sizes = (*sizes[:-1], 2 * sizes[-1])
    if dtype == torch.bool:
        least, most = 0 if low is None else max(math.ceil(low), 0), 2 if high is None else min(math.ceil(high), 2)
        made = torch.randint(least, max(most, least + 1), sizes, device=device, dtype=dtype)
    elif dtype.is_floating_point or is_complex:
        least, most = -9.0 if low is None else float(low), 9.0 if high is None else float(high)
        limits = torch.finfo(dtype)
        least, most = max(least, limits.min), min(most, limits.max)
        if is_complex:
            made = torch.view_as_complex(torch.empty((*sizes, 2), device=device).uniform_(least, most).to(real(dtype)))
        else:
            made = torch.empty(sizes, device=device, dtype=dtype).uniform_(least, most)
    else:
        limits = torch.iinfo(dtype)
        least, most = -9 if low is None else math.ceil(low), 10 if high is None else math.ceil(high)
        made = torch.randint(max(least, limits.min), min(most, limits.max), sizes, device=device, dtype=dtype)
    if noncontiguous and made.numel() > 1:
        made = made[..., ::2]
    if memory_format is not None:
        made = made.clone(memory_format=memory_format)
    if exclude_zero:
        made[made == 0] = torch.finfo(dtype).tiny if dtype.is_floating_point or is_complex else 1
    return made.requires_grad_(requires_grad) if requires_grad else made


def real(dtype: Any) -> Any:
    return torch.float64 if "128" in str(dtype) else torch.float32
