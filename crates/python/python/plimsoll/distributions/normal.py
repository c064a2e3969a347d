"""The normal distribution and those made of it."""

from __future__ import annotations

import math
from typing import Any

from .. import _plimsoll
from .._plimsoll import Tensor
from .distribution import Distribution, LocationScale, all_tensors

_LOG_ROOT = math.log(math.sqrt(2 * math.pi))


def standard_normal(shape: Any, like: Tensor) -> Tensor:
    """Draws of the standard normal distribution."""
    return _plimsoll.empty(tuple(shape), dtype=like.dtype, device=like.device).normal_()


class Normal(LocationScale):
    """The normal distribution.

    >>> import plimsoll as pm
    >>> from plimsoll.distributions import Normal
    >>> Normal(0.0, 1.0).log_prob(pm.tensor(0.0))
    tensor(-0.9189)
    """

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def stddev(self) -> Tensor:
        return self.scale

    @property
    def variance(self) -> Tensor:
        return self.scale.pow(2)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = tuple(self._extended_shape(sample_shape))
        return _plimsoll.normal(self.loc.detach().expand(shape), self.scale.detach().expand(shape))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.loc + standard_normal(self._extended_shape(sample_shape), self.loc) * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_draw(value, lambda drawn: drawn == drawn)
        return -((value - self.loc) ** 2) / (2 * self.scale**2) - self.scale.log() - _LOG_ROOT

    def cdf(self, value: Tensor) -> Tensor:
        self._check_draw(value, lambda drawn: drawn == drawn)
        return 0.5 * (1 + ((value - self.loc) * self.scale.reciprocal() / math.sqrt(2)).erf())

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc + self.scale * (2 * value - 1).erfinv() * math.sqrt(2)

    def entropy(self) -> Tensor:
        return 0.5 + _LOG_ROOT + self.scale.log()


class LogNormal(Normal):
    """The exponential of a normal distribution."""

    @property
    def mean(self) -> Tensor:
        return (self.loc + self.scale.pow(2) / 2).exp()

    @property
    def mode(self) -> Tensor:
        return (self.loc - self.scale.square()).exp()

    @property
    def variance(self) -> Tensor:
        squared = self.scale.pow(2)
        return squared.expm1() * (2 * self.loc + squared).exp()

    @property
    def stddev(self) -> Tensor:
        return self.variance.sqrt()

    def sample(self, sample_shape: Any = ()) -> Tensor:
        return super().rsample(sample_shape).detach().exp()

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return super().rsample(sample_shape).exp()

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_draw(value, lambda drawn: drawn > 0, "GreaterThan(lower_bound=0.0)")
        return super().log_prob(value.log()) - value.log()

    def cdf(self, value: Tensor) -> Tensor:
        return super().cdf(value.log())

    def icdf(self, value: Tensor) -> Tensor:
        return super().icdf(value).exp()

    def entropy(self) -> Tensor:
        return super().entropy() + self.loc


class HalfNormal(Distribution):
    """The absolute value of a normal distribution around 0."""

    has_rsample = True

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        (self.scale,) = all_tensors(scale)
        super().__init__(self.scale.shape, (), validate_args)
        self._check("scale", self.scale, self.scale > 0, "GreaterThan(lower_bound=0.0)")

    def _parameters(self) -> tuple[str, ...]:
        return ("scale",)

    @property
    def mean(self) -> Tensor:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def mode(self) -> Tensor:
        return _plimsoll.zeros_like(self.scale)

    @property
    def variance(self) -> Tensor:
        return self.scale.pow(2) * (1 - 2 / math.pi)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return (standard_normal(self._extended_shape(sample_shape), self.scale) * self.scale).abs()

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_draw(value, lambda drawn: drawn >= 0, "GreaterThanEq(lower_bound=0.0)")
        return math.log(2) - value**2 / (2 * self.scale**2) - self.scale.log() - _LOG_ROOT

    def cdf(self, value: Tensor) -> Tensor:
        return (value / self.scale / math.sqrt(2)).erf()

    def icdf(self, value: Tensor) -> Tensor:
        return self.scale * value.erfinv() * math.sqrt(2)

    def entropy(self) -> Tensor:
        return 0.5 + _LOG_ROOT + self.scale.log() - math.log(2)


class MultivariateNormal(Distribution):
    """Normal vectors with a covariance, given as such, as its inverse, or as its Cholesky factor."""

    has_rsample = True

    def __init__(
        self,
        loc: Tensor,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        given = [matrix for matrix in (covariance_matrix, precision_matrix, scale_tril) if matrix is not None]
        if len(given) != 1:
            raise ValueError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        if scale_tril is None:
            covariance = covariance_matrix if precision_matrix is None else precision_matrix.inverse()
            assert covariance is not None
            scale_tril = _plimsoll.cholesky(covariance)
        batch = _plimsoll.broadcast_shapes(tuple(scale_tril.shape[:-2]), tuple(loc.shape[:-1]))
        size = loc.shape[-1]
        self.loc = loc.expand(*batch, size)
        self.scale_tril = scale_tril.expand(*batch, size, size)
        super().__init__(batch, (size,), validate_args)

    def _parameters(self) -> tuple[str, ...]:
        return "loc", "scale_tril"

    @property
    def covariance_matrix(self) -> Tensor:
        """The covariance."""
        return self.scale_tril @ self.scale_tril.mT

    @property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance."""
        return self.covariance_matrix.inverse()

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return self.scale_tril.pow(2).sum(-1)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        drawn = standard_normal(self._extended_shape(sample_shape), self.loc)
        return self.loc + (self.scale_tril @ drawn.unsqueeze(-1)).squeeze(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_draw(value, lambda drawn: drawn == drawn, "IndependentConstraint(Real(), 1)")
        apart = (value - self.loc).unsqueeze(-1)
        solved = _plimsoll.triangular_solve(apart, self.scale_tril.expand(*apart.shape[:-2], -1, -1), upper=False)[0]
        distance = solved.squeeze(-1).pow(2).sum(-1)
        return -0.5 * (self.event_shape[0] * math.log(2 * math.pi) + distance) - self._half_log_det()  # type: ignore[no-any-return]

    def entropy(self) -> Tensor:
        return 0.5 * self.event_shape[0] * (1 + math.log(2 * math.pi)) + self._half_log_det()  # type: ignore[no-any-return]

    def _half_log_det(self) -> Tensor:
        return self.scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)
