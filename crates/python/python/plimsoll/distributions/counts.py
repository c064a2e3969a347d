"""Distributions of how often something happens."""

from __future__ import annotations

from typing import Any

from .. import _plimsoll
from .._plimsoll import Tensor
from .._random_functions import _standard_gamma, binomial, poisson
from ..nn.functional import logsigmoid
from . import constraints
from .bernoulli import OfChance
from .distribution import Distribution, all_tensors


class Poisson(Distribution):
    """How many events come in a time in which `rate` are expected.

    >>> import plimsoll as pm
    >>> from plimsoll.distributions import Poisson
    >>> Poisson(4.0).stddev
    tensor(2.)
    """

    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        (self.rate,) = all_tensors(rate)
        super().__init__(self.rate.shape, (), validate_args)

    @property
    def mean(self) -> Tensor:
        return self.rate

    @property
    def mode(self) -> Tensor:
        return self.rate.floor()

    @property
    def variance(self) -> Tensor:
        return self.rate

    def sample(self, sample_shape: Any = ()) -> Tensor:
        return poisson(self.rate.detach().expand(tuple(self._extended_shape(sample_shape))))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_draw(value)
        rate, value = _plimsoll.broadcast_tensors(self.rate, value)
        return value.xlogy(rate) - rate - (value + 1).lgamma()


class _Trials(OfChance):
    """Trials, each of which succeeds with a probability."""

    def __init__(self, count: Any, probs: Any, logits: Any, validate_args: bool | None) -> None:
        self._take(probs, logits)
        given = self._given
        self._given, self.total_count = all_tensors(given, count)
        self.total_count = self.total_count.to(given.dtype)
        super().__init__(self._given.shape, (), validate_args)

    @property
    def param_shape(self) -> Any:
        """The shape of the probabilities."""
        return self._given.shape


class Binomial(_Trials):
    """How many of `total_count` trials succeed.

    >>> import plimsoll as pm
    >>> from plimsoll.distributions import Binomial
    >>> Binomial(10, pm.tensor(0.5)).mean
    tensor(5.)
    """

    arg_constraints = {
        "total_count": constraints.nonnegative_integer,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    has_enumerate_support = True

    def __init__(self, total_count: Any = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        super().__init__(total_count, probs, logits, validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.probs

    @property
    def mode(self) -> Tensor:
        return ((self.total_count + 1) * self.probs).floor().minimum(self.total_count)

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = tuple(self._extended_shape(sample_shape))
        return binomial(self.total_count.detach().expand(shape), self.probs.detach().expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_draw(value)
        count, logits = self.total_count, self.logits
        ways = (count + 1).lgamma() - (value + 1).lgamma() - (count - value + 1).lgamma()
        # The logarithm of 1 + exp(logits), which does not overflow.
        size = logits.abs()
        return value * logits - count * ((logits + size) / 2 + (-size).exp().log1p()) + ways

    def entropy(self) -> Tensor:
        every = self.total_count.max().item()
        if bool((self.total_count != every).any()):
            raise NotImplementedError("Inhomogeneous total count not supported by `entropy`.")
        logs = self.log_prob(self.enumerate_support(False))
        return -(logs.exp() * logs).sum(0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        most = int(self.total_count.max().item())
        if bool((self.total_count != most).any()):
            raise NotImplementedError("Inhomogeneous total count not supported by `enumerate_support`.")
        values = _plimsoll.arange(1 + most, dtype=self._given.dtype, device=self._given.device)
        values = values.view((-1,) + (1,) * len(self.batch_shape))
        return values.expand((-1,) + tuple(self.batch_shape)) if expand else values


class NegativeBinomial(_Trials):
    """How many trials succeed before `total_count` have failed."""

    arg_constraints = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer

    def __init__(self, total_count: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        super().__init__(total_count, probs, logits, validate_args)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.logits.exp()

    @property
    def mode(self) -> Tensor:
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0)

    @property
    def variance(self) -> Tensor:
        return self.mean / (-self.logits).sigmoid()

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = tuple(self._extended_shape(sample_shape))
        rate = _standard_gamma(self.total_count.detach().expand(shape)) * self.logits.detach().exp()
        return poisson(rate)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_draw(value)
        count = self.total_count
        chance = count * logsigmoid(-self.logits) + value * logsigmoid(self.logits)
        ways = (count + value).lgamma() - (1.0 + value).lgamma() - count.lgamma()
        # Without failures to come there is nothing to count.
        return chance + _plimsoll.where(count + value == 0, _plimsoll.zeros_like(chance), ways)
