"""Distributions of one out of several."""

from __future__ import annotations

from typing import Any

from .. import _plimsoll
from .._plimsoll import Tensor
from .._size import Size
from ..nn import functional
from . import constraints
from .bernoulli import probabilities
from .distribution import Distribution, lazy_property


class Categorical(Distribution):
    """One of the numbers from 0 on, with probabilities (which are made to sum to 1) or their logarithms.

    >>> import plimsoll as pm
    >>> from plimsoll.distributions import Categorical
    >>> Categorical(pm.tensor([0.0, 0.0, 1.0])).sample()
    tensor(2)
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True

    def __init__(self, probs: Tensor | None = None, logits: Tensor | None = None, validate_args: bool | None = None) -> None:
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        given = probs if probs is not None else logits
        assert given is not None
        if given.dim() < 1:
            raise ValueError(f"`{'probs' if probs is not None else 'logits'}` parameter must be at least one-dimensional.")
        self._is_probs = probs is not None
        self._num_events = given.shape[-1]
        if self._is_probs:
            # Of each event's own sum, as they may be weights.
            vars(self)["probs"] = given / given.sum(-1, keepdim=True)
        else:
            vars(self)["logits"] = given - given.logsumexp(-1, keepdim=True)
        super().__init__(given.shape[:-1], (), validate_args)

    @property
    def _given(self) -> Tensor:
        return self.probs if self._is_probs else self.logits

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        return constraints.integer_interval(0, self._num_events - 1)

    @lazy_property
    def probs(self) -> Tensor:
        """The probabilities."""
        return functional.softmax(self.logits, dim=-1)

    @lazy_property
    def logits(self) -> Tensor:
        """Their logarithms."""
        return probabilities(self.probs).log()

    @property
    def param_shape(self) -> Size:
        """The shape of the probabilities."""
        return Size(self._given.shape)

    @property
    def mean(self) -> Tensor:
        return self._given.new_full(tuple(self.batch_shape), float("nan"))

    @property
    def mode(self) -> Tensor:
        return self.probs.argmax(-1)

    @property
    def variance(self) -> Tensor:
        return self._given.new_full(tuple(self.batch_shape), float("nan"))

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = (sample_shape,) if isinstance(sample_shape, int) else tuple(sample_shape)
        rows = self.probs.detach().reshape(-1, self._num_events)
        drawn = _plimsoll.multinomial(rows, Size(shape).numel(), True).T
        return drawn.reshape(tuple(self._extended_shape(shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_draw(value)
        value = value.long().unsqueeze(-1)
        shape = _plimsoll.broadcast_shapes(tuple(value.shape[:-1]), tuple(self.batch_shape))
        logits = self.logits.expand(*shape, self._num_events)
        return logits.gather(-1, value.expand(*shape, 1)).squeeze(-1)

    def entropy(self) -> Tensor:
        from .._facts import finfo

        logits = self.logits.clamp(min=finfo(self.logits.dtype).min)
        return -(logits * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = _plimsoll.arange(self._num_events, device=self._given.device)
        values = values.view((-1,) + (1,) * len(self.batch_shape))
        return values.expand((-1,) + tuple(self.batch_shape)) if expand else values


class _Counts(Distribution):
    """Vectors that say how often each of a `Categorical`'s numbers came."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}

    def __init__(self, probs: Tensor | None = None, logits: Tensor | None = None, validate_args: bool | None = None) -> None:
        self._categorical = Categorical(probs, logits, validate_args)
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args)

    @property
    def probs(self) -> Tensor:
        """The probabilities."""
        return self._categorical.probs

    @property
    def logits(self) -> Tensor:
        """Their logarithms."""
        return self._categorical.logits


class OneHotCategorical(_Counts):
    """As `Categorical`, the draw being a vector with a 1 at its place."""

    support = constraints.one_hot
    has_enumerate_support = True

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        return functional.one_hot(self._categorical.mode, self.event_shape[0]).to(self.probs.dtype)

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        drawn = self._categorical.sample(sample_shape)
        return functional.one_hot(drawn, self.event_shape[0]).to(self.probs.dtype)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_draw(value)
        return self._categorical.log_prob(value.max(-1)[1])

    def entropy(self) -> Tensor:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        count = self.event_shape[0]
        values = _plimsoll.eye(count, dtype=self.probs.dtype, device=self.probs.device)
        values = values.view((count,) + (1,) * len(self.batch_shape) + (count,))
        return values.expand((count,) + tuple(self.batch_shape) + (count,)) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """As `OneHotCategorical`, with the gradients of the probabilities."""

    has_rsample = True

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.sample(sample_shape) + (self.probs - self.probs.detach())


class Multinomial(_Counts):
    """How often each comes in a number of draws of a `Categorical`."""

    def __init__(
        self,
        total_count: int = 1,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        super().__init__(probs, logits, validate_args)
        if self._validate_args and total_count < 0:
            raise ValueError(f"Expected parameter total_count of distribution Multinomial to be 0 or more, but found {total_count}")

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> Any:
        return constraints.multinomial(self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.probs * self.total_count

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = (sample_shape,) if isinstance(sample_shape, int) else tuple(sample_shape)
        drawn = self._categorical.sample((self.total_count, *shape))
        return functional.one_hot(drawn, self.event_shape[0]).sum(0).to(self.probs.dtype)

    def entropy(self) -> Tensor:
        from .counts import Binomial

        # Of the draws one by one, less what is lost with their order.
        count = _plimsoll.tensor(float(self.total_count), dtype=self.probs.dtype, device=self.probs.device)
        each = Binomial(self.total_count, self.probs, validate_args=False)
        times = each.enumerate_support(expand=False)
        lost = (each.log_prob(times).exp() * (times + 1).lgamma()).sum((0, -1))
        return count * self._categorical.entropy() - (count + 1).lgamma() + lost

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_draw(value)
        logits, value = _plimsoll.broadcast_tensors(self.logits, value)
        log_factorial_n, log_factorials = (value.sum(-1) + 1).lgamma(), (value + 1).lgamma().sum(-1)
        logits = _plimsoll.where((value == 0) & logits.isneginf(), _plimsoll.zeros_like(logits), logits)
        return log_factorial_n - log_factorials + (logits * value).sum(-1)
