"""The normal distribution and those made of it."""

from __future__ import annotations

import math
from typing import Any

from .. import _plimsoll
from .._plimsoll import Tensor
from . import constraints
from .distribution import Distribution, LocationScale, all_tensors, lazy_property

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
        self._check_draw(value)
        return -((value - self.loc) ** 2) / (2 * self.scale**2) - self.scale.log() - _LOG_ROOT

    def cdf(self, value: Tensor) -> Tensor:
        self._check_draw(value)
        return 0.5 * (1 + ((value - self.loc) * self.scale.reciprocal() / math.sqrt(2)).erf())

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc + self.scale * (2 * value - 1).erfinv() * math.sqrt(2)

    def entropy(self) -> Tensor:
        return 0.5 + _LOG_ROOT + self.scale.log()


class LogNormal(Normal):
    """The exponential of a normal distribution."""

    support = constraints.positive
    _is_made_of_another = True

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
        self._check_draw(value)
        # Of any number: the logarithm's support is not this one's.
        return self._normal().log_prob(value.log()) - value.log()

    def _normal(self) -> Normal:
        return Normal(self.loc, self.scale, self._validate_args)

    def cdf(self, value: Tensor) -> Tensor:
        return self._normal().cdf(value.log())

    def icdf(self, value: Tensor) -> Tensor:
        return super().icdf(value).exp()

    def entropy(self) -> Tensor:
        return super().entropy() + self.loc


class HalfNormal(Distribution):
    """The absolute value of a normal distribution around 0."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    _is_made_of_another = True
    has_rsample = True

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        (self.scale,) = all_tensors(scale)
        super().__init__(self.scale.shape, (), validate_args)

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
        self._check_draw(value)
        return math.log(2) - value**2 / (2 * self.scale**2) - self.scale.log() - _LOG_ROOT

    def cdf(self, value: Tensor) -> Tensor:
        self._check_draw(value)
        return (value / self.scale / math.sqrt(2)).erf()

    def icdf(self, value: Tensor) -> Tensor:
        return self.scale * value.erfinv() * math.sqrt(2)

    def entropy(self) -> Tensor:
        return 0.5 + _LOG_ROOT + self.scale.log() - math.log(2)


class MultivariateNormal(Distribution):
    """Normal vectors with a covariance, given as such, as its inverse, or as its Cholesky factor."""

    arg_constraints = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector
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
        matrices = {"covariance_matrix": covariance_matrix, "precision_matrix": precision_matrix, "scale_tril": scale_tril}
        given = {name: matrix for name, matrix in matrices.items() if matrix is not None}
        if len(given) != 1:
            raise ValueError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        ((name, matrix),) = given.items()
        if matrix.dim() < 2:
            raise ValueError(f"{name} must be at least two-dimensional, with optional leading batch dimensions")
        batch = _plimsoll.broadcast_shapes(tuple(matrix.shape[:-2]), tuple(loc.shape[:-1]))
        size = loc.shape[-1]
        self.loc = loc.expand(*batch, size)
        # The one that was given stands where the others are computed when they are asked for.
        vars(self)[name] = matrix.expand(*batch, size, size)
        super().__init__(batch, (size,), validate_args)

    @lazy_property
    def _factor(self) -> Tensor:
        """The Cholesky factor, kept under a name of its own: what was asked for is shown, and this need not have been."""
        own = vars(self)
        if "scale_tril" in own:
            return own["scale_tril"]  # type: ignore[no-any-return]
        return _plimsoll.cholesky(own["covariance_matrix"] if "covariance_matrix" in own else own["precision_matrix"].inverse())

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The Cholesky factor of the covariance."""
        return self._factor

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance."""
        return self._factor @ self._factor.mT

    @lazy_property
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
        return self._factor.pow(2).sum(-1)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        drawn = standard_normal(self._extended_shape(sample_shape), self.loc)
        return self.loc + (self._factor @ drawn.unsqueeze(-1)).squeeze(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_draw(value)
        apart = (value - self.loc).unsqueeze(-1)
        solved = _plimsoll.triangular_solve(apart, self._factor.expand(*apart.shape[:-2], -1, -1), upper=False)[0]
        distance = solved.squeeze(-1).pow(2).sum(-1)
        return -0.5 * (self.event_shape[0] * math.log(2 * math.pi) + distance) - self._half_log_det()  # type: ignore[no-any-return]

    def entropy(self) -> Tensor:
        return 0.5 * self.event_shape[0] * (1 + math.log(2 * math.pi)) + self._half_log_det()  # type: ignore[no-any-return]

    def _half_log_det(self) -> Tensor:
        return self._factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)
