"""Distributions of yes and no."""

from __future__ import annotations

from typing import Any

from .. import _plimsoll
from .._plimsoll import Tensor
from ..nn import functional
from . import constraints
from .distribution import Distribution, all_hold, all_tensors, lazy_property


def probabilities(values: Tensor) -> Tensor:
    """Kept off 0 and 1, where logarithms end."""
    from .._facts import finfo

    smallest = finfo(values.dtype).eps
    return values.clamp(smallest, 1 - smallest)


class OfChance(Distribution):
    """What goes by a probability, given as such or as the logarithm of its odds. The other is computed when it is asked for."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    _is_probs: bool

    def _take(self, probs: Any, logits: Any) -> None:
        """Keeps the one that is given."""
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        self._is_probs = probs is not None
        (self._given,) = all_tensors(probs if probs is not None else logits)

    @property
    def _given(self) -> Tensor:
        return self.probs if self._is_probs else self.logits

    @_given.setter
    def _given(self, value: Tensor) -> None:
        vars(self)["probs" if self._is_probs else "logits"] = value

    @lazy_property
    def probs(self) -> Tensor:
        """The probability."""
        return self.logits.sigmoid()

    @lazy_property
    def logits(self) -> Tensor:
        """The logarithm of its odds."""
        kept = probabilities(self.probs)
        return kept.log() - (-kept).log1p()


class _OfOneChance(OfChance):
    """One probability alone."""

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._take(probs, logits)
        super().__init__(self._given.shape, (), validate_args)


class Bernoulli(_OfOneChance):
    """1 with a probability, else 0.

    >>> import plimsoll as pm
    >>> from plimsoll.distributions import Bernoulli
    >>> Bernoulli(pm.tensor([0.0, 1.0])).sample()
    tensor([0., 1.])
    """

    support = constraints.boolean
    has_enumerate_support = True

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        mode = (self.probs >= 0.5).to(self.probs.dtype)
        return _plimsoll.where(self.probs == 0.5, _plimsoll.full_like(mode, float("nan")), mode)

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        return _plimsoll.bernoulli(self.probs.detach().expand(tuple(self._extended_shape(sample_shape))))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_draw(value)
        logits, value = _plimsoll.broadcast_tensors(self.logits, value)
        return -functional.binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self) -> Tensor:
        return functional.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = _plimsoll.arange(2, dtype=self._given.dtype, device=self._given.device)
        values = values.view((-1,) + (1,) * len(self.batch_shape))
        return values.expand((-1,) + tuple(self.batch_shape)) if expand else values


class Geometric(_OfOneChance):
    """How often no comes before the first yes."""

    support = constraints.nonnegative_integer

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        super().__init__(probs, logits, validate_args)
        if self._validate_args and self._is_probs and not all_hold(self.probs > 0):
            raise ValueError(
                f"Expected parameter probs ({type(self.probs).__name__} of shape {tuple(self.probs.shape)}) of distribution "
                f"{self!r} to be positive but found invalid values:\n{self.probs}"
            )

    @property
    def mean(self) -> Tensor:
        return 1 / self.probs - 1

    @property
    def mode(self) -> Tensor:
        return _plimsoll.zeros_like(self.probs)

    @property
    def variance(self) -> Tensor:
        return (1 / self.probs - 1) / self.probs

    def sample(self, sample_shape: Any = ()) -> Tensor:
        from .._facts import finfo

        probs = self.probs.detach()
        drawn = _plimsoll.empty(tuple(self._extended_shape(sample_shape)), dtype=probs.dtype, device=probs.device)
        drawn.uniform_(finfo(probs.dtype).tiny, 1)
        return (drawn.log() / (-probs).log1p()).floor()

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_draw(value)
        value, probs = _plimsoll.broadcast_tensors(value, self.probs)
        probs = _plimsoll.where((probs == 1) & (value == 0), _plimsoll.zeros_like(probs), probs)
        return value * (-probs).log1p() + self.probs.log()

    def entropy(self) -> Tensor:
        return functional.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none") / self.probs
