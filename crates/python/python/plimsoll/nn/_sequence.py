"""Losses of sequences."""

from __future__ import annotations

from collections.abc import Sequence

from .._plimsoll import Tensor
from . import _functional
from ._reduction import named


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor | Sequence[int],
    target_lengths: Tensor | Sequence[int],
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """Minus the log-likelihood of sequences of labels, over all ways to spread them over time."""
    reduction = named(None, None, reduction)
    of_inputs, of_targets = _listed(input_lengths, "input"), _listed(target_lengths, "target")
    if targets.dim() == 1 and log_probs.dim() == 2 and not of_targets:
        raise RuntimeError("ctc_loss needs the length of its targets")
    return _functional.ctc_loss(log_probs, targets, of_inputs, of_targets, blank, reduction, zero_infinity)


def _listed(lengths: Tensor | Sequence[int], name: str) -> list[int]:
    if not isinstance(lengths, Tensor):
        return [int(length) for length in lengths]
    if lengths.dtype.is_floating_point:
        raise RuntimeError(f"{name}_lengths must be integral")
    return [int(length) for length in lengths.reshape(-1).tolist()]
