"""What classes of distributions are written with: PyTorch's names, for classes of one's own."""

from __future__ import annotations

from numbers import Number
from typing import Any

from ..._plimsoll import Tensor
from ...nn import functional
from ..bernoulli import probabilities
from ..distribution import all_tensors, lazy_property

__all__ = ["broadcast_all", "clamp_probs", "euler_constant", "lazy_property", "logits_to_probs", "probs_to_logits"]

euler_constant = 0.57721566490153286060
clamp_probs = probabilities


def broadcast_all(*values: Any) -> tuple[Tensor, ...]:
    """Numbers and tensors as tensors of one shape; numbers take the dtype and device of the tensors.

    >>> from plimsoll.distributions.utils import broadcast_all
    >>> broadcast_all(1, 2.5)
    (tensor(1.), tensor(2.5000))
    """
    if not all(isinstance(value, (Number, Tensor)) for value in values):
        raise ValueError(f"broadcast_all: these are numbers and tensors, not {values!r}")
    return all_tensors(*values)


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Probabilities of their logarithms; of two outcomes, of the logarithms of the odds."""
    return logits.sigmoid() if is_binary else functional.softmax(logits, dim=-1)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """The other way round."""
    kept = probabilities(probs)
    return kept.log() - (-kept).log1p() if is_binary else kept.log()
