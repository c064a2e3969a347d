"""Distributions of positive numbers by powers of uniform ones: closed forms both ways."""

from __future__ import annotations

import math
from typing import Any

from .. import _plimsoll
from .._facts import finfo
from .._plimsoll import Tensor
from . import constraints
from .continuous import Cauchy
from .distribution import Distribution, all_tensors

_EULER = 0.57721566490153286060


def _uniform(shape: Any, like: Tensor) -> Tensor:
    """Off 0 and 1, where powers and logarithms end."""
    facts = finfo(like.dtype)
    return _plimsoll.empty(tuple(shape), dtype=like.dtype, device=like.device).uniform_(facts.tiny, 1 - facts.eps)


class HalfCauchy(Distribution):
    """The absolute value of a Cauchy distribution around 0."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    _is_made_of_another = True
    has_rsample = True

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        (self.scale,) = all_tensors(scale)
        super().__init__(self.scale.shape, (), validate_args)
        self._cauchy = Cauchy(_plimsoll.zeros_like(self.scale), self.scale, validate_args=False)

    @property
    def mean(self) -> Tensor:
        return _plimsoll.full_like(self.scale, float("inf"))

    @property
    def mode(self) -> Tensor:
        return _plimsoll.zeros_like(self.scale)

    @property
    def variance(self) -> Tensor:
        return self._cauchy.variance

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self._cauchy.rsample(sample_shape).abs()

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_draw(value)
        density = self._cauchy.log_prob(value) + math.log(2)
        return _plimsoll.where(value >= 0, density, _plimsoll.full_like(density, -float("inf")))

    def cdf(self, value: Tensor) -> Tensor:
        self._check_draw(value)
        return 2 * self._cauchy.cdf(value) - 1

    def icdf(self, value: Tensor) -> Tensor:
        return self._cauchy.icdf((value + 1) / 2)

    def entropy(self) -> Tensor:
        return self._cauchy.entropy() - math.log(2)


class Pareto(Distribution):
    """Numbers from `scale` on whose tail falls off with a power."""

    arg_constraints = {"alpha": constraints.positive, "scale": constraints.positive}
    has_rsample = True

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        return constraints.greater_than_eq(self.scale)

    def __init__(self, scale: Any, alpha: Any, validate_args: bool | None = None) -> None:
        self.scale, self.alpha = all_tensors(scale, alpha)
        super().__init__(self.scale.shape, (), validate_args)

    @property
    def mean(self) -> Tensor:
        # Infinite up to 1, where the denominator is 0.
        power = self.alpha.clamp(min=1)
        return power * self.scale / (power - 1)

    @property
    def mode(self) -> Tensor:
        return self.scale

    @property
    def variance(self) -> Tensor:
        power = self.alpha.clamp(min=2)
        return self.scale.pow(2) * power / ((power - 1).pow(2) * (power - 2))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        drawn = _plimsoll.empty(tuple(self._extended_shape(sample_shape)), dtype=self.scale.dtype, device=self.scale.device)
        return self.scale * (drawn.exponential_() / self.alpha).exp()

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_draw(value)
        return self.alpha.log() + self.alpha * self.scale.log() - (self.alpha + 1) * value.log()

    def cdf(self, value: Tensor) -> Tensor:
        self._check_draw(value)
        return 1 - (self.scale / value) ** self.alpha

    def icdf(self, value: Tensor) -> Tensor:
        return self.scale * (1 - value) ** (-1 / self.alpha)

    def entropy(self) -> Tensor:
        return (self.scale / self.alpha).log() + (1 + self.alpha.reciprocal())


class Weibull(Distribution):
    """The time until something fails that wears out with a power of time."""

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.scale, self.concentration = all_tensors(scale, concentration)
        super().__init__(self.scale.shape, (), validate_args)

    def _moment(self, order: int) -> Tensor:
        return (1 + order / self.concentration).lgamma().exp()

    @property
    def mean(self) -> Tensor:
        return self.scale * self._moment(1)

    @property
    def mode(self) -> Tensor:
        power = self.concentration
        return self.scale * ((power - 1) / power) ** power.reciprocal()

    @property
    def variance(self) -> Tensor:
        return self.scale.pow(2) * (self._moment(2) - self._moment(1).pow(2))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        drawn = _plimsoll.empty(tuple(self._extended_shape(sample_shape)), dtype=self.scale.dtype, device=self.scale.device)
        return self.scale * drawn.exponential_() ** self.concentration.reciprocal()

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_draw(value)
        power, ratio = self.concentration, value / self.scale
        return (power / self.scale).log() + (power - 1) * ratio.log() - ratio**power

    def cdf(self, value: Tensor) -> Tensor:
        self._check_draw(value, constraints.nonnegative)
        return -(-((value / self.scale) ** self.concentration)).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        return self.scale * (-(-value).log1p()) ** self.concentration.reciprocal()

    def entropy(self) -> Tensor:
        inverse = self.concentration.reciprocal()
        return _EULER * (1 - inverse) + (self.scale * inverse).log() + 1


class Kumaraswamy(Distribution):
    """Numbers from 0 to 1, much as `Beta`'s, by closed forms."""

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None) -> None:
        self.concentration1, self.concentration0 = all_tensors(concentration1, concentration0)
        super().__init__(self.concentration1.shape, (), validate_args)

    def _moment(self, order: int) -> Tensor:
        one, other = 1 + order / self.concentration1, self.concentration0
        return (one.lgamma() + other.lgamma() - (one + other).lgamma()).exp() * other

    @property
    def mean(self) -> Tensor:
        return self._moment(1)

    @property
    def mode(self) -> Tensor:
        # PyTorch's formula gives no other.
        return float("nan") * self.concentration1

    @property
    def variance(self) -> Tensor:
        return self._moment(2) - self._moment(1).pow(2)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        drawn = _uniform(self._extended_shape(sample_shape), self.concentration0)
        return self.icdf(drawn)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_draw(value)
        one, other = self.concentration1, self.concentration0
        return one.log() + other.log() + (one - 1) * value.log() + (other - 1) * (-(value**one)).log1p()

    def cdf(self, value: Tensor) -> Tensor:
        self._check_draw(value)
        return -(self.concentration0 * (-(value**self.concentration1)).log1p()).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        return (-((-value).log1p() / self.concentration0).expm1()) ** self.concentration1.reciprocal()

    def entropy(self) -> Tensor:
        one, other = 1 - self.concentration1.reciprocal(), 1 - self.concentration0.reciprocal()
        harmonic = (self.concentration0 + 1).digamma() + _EULER
        return other + one * harmonic - self.concentration1.log() - self.concentration0.log()
