"""Draws of yes and no, and of one out of several, made soft by a temperature, so that gradients reach the
probabilities."""

from __future__ import annotations

import math
from typing import Any

from .. import _plimsoll
from .._facts import finfo
from .._plimsoll import Tensor
from ..nn.functional import log_softmax, softplus
from . import constraints
from .bernoulli import OfChance, probabilities
from .categorical import Categorical
from .distribution import Distribution


def _uniform(shape: Any, like: Tensor) -> Tensor:
    return probabilities(_plimsoll.rand(tuple(shape), dtype=like.dtype, device=like.device))


class RelaxedBernoulli(OfChance):
    """A number from 0 to 1, near to either the colder it is."""

    support = constraints.unit_interval
    _is_made_of_another = True
    has_rsample = True
    _shared = ("temperature",)

    def __init__(self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._take(probs, logits)
        self.temperature, given = temperature, self._given
        super().__init__(given.shape, (), validate_args)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        drawn = _uniform(self._extended_shape(sample_shape), self._given)
        odds = drawn.log() - (-drawn).log1p() + self.logits
        facts = finfo(self._given.dtype)
        return (odds / self.temperature).sigmoid().clamp(min=facts.tiny, max=1.0 - facts.eps)  # type: ignore[no-any-return]

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_draw(value)
        facts = finfo(value.dtype)
        within = value.clamp(min=facts.tiny, max=1.0 - facts.eps)
        odds = within.log() - (-within).log1p()
        apart = self.logits - odds * self.temperature
        density = _log_of(self.temperature) + apart - 2 * softplus(apart)
        return density + softplus(-odds) + softplus(odds)  # type: ignore[no-any-return]


class RelaxedOneHotCategorical(Distribution):
    """Parts of 1, near to all for one the colder it is: Gumbel's softmax.

    >>> import plimsoll as pm
    >>> from plimsoll.distributions import RelaxedOneHotCategorical
    >>> round(RelaxedOneHotCategorical(pm.tensor(1.0), pm.ones(3)).rsample().sum().item(), 5)
    1.0
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex
    has_rsample = True
    _shared = ("temperature",)

    def __init__(self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._categorical = Categorical(probs, logits, validate_args)
        self.temperature = temperature
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args)

    @property
    def probs(self) -> Tensor:
        """The probabilities."""
        return self._categorical.probs

    @property
    def logits(self) -> Tensor:
        """Their logarithms."""
        return self._categorical.logits

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        drawn = _uniform(self._extended_shape(sample_shape), self.logits)
        return log_softmax((self.logits - (-drawn.log()).log()) / self.temperature, dim=-1).exp()

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_draw(value)
        count, log = self.event_shape[-1], value.log()
        apart = log_softmax(self.logits - log * self.temperature, dim=-1).sum(-1)
        return math.lgamma(count) + (count - 1) * _log_of(self.temperature) + apart - log.sum(-1)  # type: ignore[no-any-return]


def _log_of(temperature: Any) -> Any:
    return temperature.log() if isinstance(temperature, Tensor) else math.log(temperature)
