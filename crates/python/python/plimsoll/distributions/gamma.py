"""The gamma distribution and those made of it: parts of a whole (`Beta`, `Dirichlet`), squares of normal draws
(`Chi2`), their ratios (`FisherSnedecor`), and normal draws of an uncertain scale (`StudentT`). Gradients reach the
parameters of all."""

from __future__ import annotations

import math
from typing import Any

from .. import _plimsoll, special
from .._facts import finfo
from .._plimsoll import Tensor
from .._random_functions import _dirichlet_grad, _sample_dirichlet, _standard_gamma
from ..autograd.function import Function
from ..functional import as_tensor
from . import constraints
from .distribution import Distribution, all_tensors
from .normal import standard_normal


def _nan_unless(holds: Tensor, value: Tensor) -> Tensor:
    return _plimsoll.where(holds, value, _plimsoll.full_like(value, float("nan")))


def _log_beta(a: Tensor, b: Tensor) -> Tensor:
    return a.lgamma() + b.lgamma() - (a + b).lgamma()


class Gamma(Distribution):
    """Waits for several events that come at a rate, also for parts of one.

    >>> import plimsoll as pm
    >>> from plimsoll.distributions import Gamma
    >>> Gamma(2.0, 4.0).mean
    tensor(0.5000)
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        self.concentration, self.rate = all_tensors(concentration, rate)
        super().__init__(self.concentration.shape, (), validate_args)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.rate

    @property
    def mode(self) -> Tensor:
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self) -> Tensor:
        return self.concentration / self.rate.pow(2)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = tuple(self._extended_shape(sample_shape))
        value = _standard_gamma(self.concentration.expand(shape)) / self.rate.expand(shape)
        value.detach().clamp_(min=finfo(value.dtype).tiny)
        return value

    def log_prob(self, value: Any) -> Tensor:
        if not isinstance(value, Tensor):
            value = as_tensor(value, dtype=self.rate.dtype, device=self.rate.device)
        self._check_draw(value)
        power, rate = self.concentration, self.rate
        return power.xlogy(rate) + (power - 1).xlogy(value) - rate * value - power.lgamma()  # type: ignore[no-any-return]

    def cdf(self, value: Tensor) -> Tensor:
        self._check_draw(value)
        return special.gammainc(self.concentration, self.rate * value)

    def entropy(self) -> Tensor:
        power = self.concentration
        return power - self.rate.log() + power.lgamma() + (1 - power) * power.digamma()


class Chi2(Gamma):
    """The sum of the squares of `df` normal draws."""

    arg_constraints = {"df": constraints.positive}

    def __init__(self, df: Any, validate_args: bool | None = None) -> None:
        (freedom,) = all_tensors(df)
        super().__init__(0.5 * freedom, _plimsoll.full_like(freedom, 0.5), validate_args)

    @property
    def df(self) -> Tensor:
        """The degrees of freedom."""
        return self.concentration * 2


class InverseGamma(Distribution):
    """One over a draw of a gamma distribution."""

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        self.base_dist = Gamma(concentration, rate, validate_args)
        super().__init__(self.base_dist.batch_shape, (), validate_args)

    @property
    def concentration(self) -> Tensor:
        """The gamma distribution's."""
        return self.base_dist.concentration

    @property
    def rate(self) -> Tensor:
        """The gamma distribution's."""
        return self.base_dist.rate

    @property
    def mean(self) -> Tensor:
        value = self.rate / (self.concentration - 1)
        return _plimsoll.where(self.concentration > 1, value, _plimsoll.full_like(value, float("inf")))

    @property
    def mode(self) -> Tensor:
        return self.rate / (self.concentration + 1)

    @property
    def variance(self) -> Tensor:
        value = self.rate.square() / ((self.concentration - 1).square() * (self.concentration - 2))
        return _plimsoll.where(self.concentration > 2, value, _plimsoll.full_like(value, float("inf")))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.base_dist.rsample(sample_shape).reciprocal()

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_draw(value)
        return self.base_dist.log_prob(value.reciprocal()) - 2 * value.log()

    def cdf(self, value: Tensor) -> Tensor:
        self._check_draw(value, constraints.nonnegative)
        return special.gammaincc(self.concentration, self.rate / value)

    def entropy(self) -> Tensor:
        power = self.concentration
        return power + self.rate.log() + power.lgamma() - (1 + power) * power.digamma()


class _DirichletDraw(Function):
    @staticmethod
    def forward(ctx: Any, concentration: Tensor) -> Tensor:
        drawn = _sample_dirichlet(concentration)
        ctx.save_for_backward(drawn, concentration)
        return drawn

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        drawn, concentration = ctx.saved_tensors
        moved = _dirichlet_grad(drawn, concentration, concentration.sum(-1, keepdim=True))
        return moved * (grad - (drawn * grad).sum(-1, keepdim=True))  # type: ignore[no-any-return]


class Dirichlet(Distribution):
    """Parts of a whole, which sum to 1.

    >>> import plimsoll as pm
    >>> from plimsoll.distributions import Dirichlet
    >>> Dirichlet(pm.tensor([1.0, 3.0])).mean
    tensor([0.2500, 0.7500])
    """

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration: Tensor, validate_args: bool | None = None) -> None:
        if concentration.dim() < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:], validate_args)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.concentration.sum(-1, keepdim=True)

    @property
    def mode(self) -> Tensor:
        above = (self.concentration - 1).clamp(min=0.0)
        mode = above / above.sum(-1, keepdim=True)
        # Where all corners are likely and nothing between them is, PyTorch names the first.
        return _plimsoll.where((self.concentration < 1).all(-1, keepdim=True), _first_corner(self.concentration), mode)

    @property
    def variance(self) -> Tensor:
        total = self.concentration.sum(-1, keepdim=True)
        return self.concentration * (total - self.concentration) / (total.pow(2) * (total + 1))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = tuple(self._extended_shape(sample_shape))
        return _DirichletDraw.apply(self.concentration.expand(shape))  # type: ignore[no-any-return]

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_draw(value)
        power = self.concentration
        return (power - 1).xlogy(value).sum(-1) + power.sum(-1).lgamma() - power.lgamma().sum(-1)

    def entropy(self) -> Tensor:
        power = self.concentration
        count, total = power.shape[-1], power.sum(-1)
        corner = power.lgamma().sum(-1) - total.lgamma()
        return corner - (count - total) * total.digamma() - ((power - 1.0) * power.digamma()).sum(-1)  # type: ignore[no-any-return]


def _first_corner(concentration: Tensor) -> Tensor:
    corner = _plimsoll.zeros_like(concentration)
    corner[..., 0] = 1.0
    return corner


class Beta(Distribution):
    """A part of a whole, from 0 to 1.

    >>> import plimsoll as pm
    >>> from plimsoll.distributions import Beta
    >>> Beta(1.0, 3.0).mean
    tensor(0.2500)
    """

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None) -> None:
        both = _plimsoll.stack(all_tensors(concentration1, concentration0), -1)
        self._dirichlet = Dirichlet(both, validate_args)
        super().__init__(both.shape[:-1], (), validate_args)

    @property
    def concentration1(self) -> Tensor:
        """What draws it to 1."""
        return self._dirichlet.concentration[..., 0]

    @property
    def concentration0(self) -> Tensor:
        """What draws it to 0."""
        return self._dirichlet.concentration[..., 1]

    @property
    def mean(self) -> Tensor:
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def mode(self) -> Tensor:
        return self._dirichlet.mode[..., 0]

    @property
    def variance(self) -> Tensor:
        total = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (total.pow(2) * (total + 1))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self._dirichlet.rsample(sample_shape)[..., 0]

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_draw(value)
        one, other = self.concentration1, self.concentration0
        return (one - 1).xlogy(value) + (other - 1).xlogy(1 - value) - _log_beta(one, other)

    def entropy(self) -> Tensor:
        return self._dirichlet.entropy()


class FisherSnedecor(Distribution):
    """The ratio of two draws of `Chi2`, each over its degrees of freedom."""

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, df1: Any, df2: Any, validate_args: bool | None = None) -> None:
        self.df1, self.df2 = all_tensors(df1, df2)
        super().__init__(self.df1.shape, (), validate_args)
        self._gamma1, self._gamma2 = Gamma(self.df1 * 0.5, self.df1), Gamma(self.df2 * 0.5, self.df2)

    @property
    def mean(self) -> Tensor:
        return _nan_unless(self.df2 > 2, self.df2 / (self.df2 - 2))

    @property
    def mode(self) -> Tensor:
        return _nan_unless(self.df1 > 2, (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2))

    @property
    def variance(self) -> Tensor:
        one, other = self.df1, self.df2
        value = 2 * other.pow(2) * (one + other - 2) / (one * (other - 2).pow(2) * (other - 4))
        return _nan_unless(other > 4, value)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        above, below = self._gamma1.rsample(sample_shape), self._gamma2.rsample(sample_shape)
        tiny = finfo(below.dtype).tiny
        below.detach().clamp_(min=tiny)
        value = above / below
        value.detach().clamp_(min=tiny)
        return value

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_draw(value)
        one, other, ratio = self.df1 * 0.5, self.df2 * 0.5, self.df1 / self.df2
        density = one * ratio.log() + (one - 1) * value.log() - (one + other) * (ratio * value).log1p()
        return density - _log_beta(one, other)


class StudentT(Distribution):
    """A normal draw over the root of a `Chi2` over its degrees of freedom: the fewer, the heavier are the tails."""

    arg_constraints = {"df": constraints.positive, "loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None) -> None:
        self.df, self.loc, self.scale = all_tensors(df, loc, scale)
        super().__init__(self.df.shape, (), validate_args)
        self._chi2 = Chi2(self.df)

    @property
    def mean(self) -> Tensor:
        return _nan_unless(self.df > 1, self.loc)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        value = self.scale.pow(2) * self.df / (self.df - 2)
        value = _plimsoll.where(self.df > 2, value, _plimsoll.full_like(value, float("inf")))
        return _nan_unless(self.df > 1, value)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        normal = standard_normal(self._extended_shape(sample_shape), self.loc)
        return self.loc + self.scale * normal * (self._chi2.rsample(sample_shape) / self.df).rsqrt()

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_draw(value)
        apart, half = (value - self.loc) / self.scale, 0.5 * self.df
        norm = self.scale.log() + 0.5 * self.df.log() + 0.5 * math.log(math.pi) + half.lgamma() - (half + 0.5).lgamma()
        return -(half + 0.5) * (apart**2 / self.df).log1p() - norm

    def entropy(self) -> Tensor:
        half = 0.5 * self.df
        beta = half.lgamma() + math.lgamma(0.5) - (half + 0.5).lgamma()
        return self.scale.log() + (half + 0.5) * ((half + 0.5).digamma() - half.digamma()) + 0.5 * self.df.log() + beta
