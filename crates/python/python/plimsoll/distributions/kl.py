"""How far one distribution is from another, in nats: the pairs for which that is known in closed form."""

from __future__ import annotations

from typing import Any, Callable, NoReturn, TypeVar

from .. import _plimsoll
from .._plimsoll import Tensor
from ..nn.functional import softplus
from .bernoulli import Bernoulli, Geometric
from .categorical import Categorical, OneHotCategorical
from .continuous import Cauchy, Exponential, Gumbel, Laplace, Uniform
from .counts import Binomial, Poisson
from .distribution import Distribution, Independent, sum_rightmost
from .gamma import Beta, Dirichlet, Gamma, InverseGamma
from .heavy_tails import HalfCauchy, Pareto
from .normal import HalfNormal, LogNormal, MultivariateNormal, Normal
from .transformed_distribution import TransformedDistribution

_EULER = 0.57721566490153286060
_Rule = TypeVar("_Rule", bound=Callable[..., Tensor])
_RULES: dict[tuple[type, type], Callable[..., Tensor]] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[_Rule], _Rule]:
    """A decorator: the function gives the divergence of distributions of these classes."""
    if not issubclass(type_p, Distribution) or not issubclass(type_q, Distribution):
        raise TypeError("register_kl: both are classes of distributions")

    def register(rule: _Rule) -> _Rule:
        _RULES[type_p, type_q] = rule
        return rule

    return register


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """The expected difference of the logarithms of both densities, under `p`.

    >>> from plimsoll.distributions import Normal, kl_divergence
    >>> kl_divergence(Normal(1.0, 1.0), Normal(0.0, 1.0))
    tensor(0.5000)
    """
    # The nearest rule: of the classes themselves before those above them.
    for of_p in type(p).__mro__:
        for of_q in type(q).__mro__:
            rule = _RULES.get((of_p, of_q))
            if rule is not None:
                return rule(p, q)
    _refuse(p, q)


def _refuse(p: Distribution, q: Distribution) -> NoReturn:
    raise NotImplementedError(f"No KL(p || q) is implemented for p type {type(p).__name__} and q type {type(q).__name__}")


@register_kl(Normal, Normal)
def _normal(p: Any, q: Any) -> Tensor:
    ratio = (p.scale / q.scale).pow(2)
    made: Tensor = 0.5 * (ratio + ((p.loc - q.loc) / q.scale).pow(2) - 1 - ratio.log())
    return made


@register_kl(LogNormal, LogNormal)
def _log_normal(p: Any, q: Any) -> Tensor:
    return _normal(p, q)


# A class below another's is not of its kind here.
register_kl(LogNormal, Normal)(_refuse)
register_kl(Normal, LogNormal)(_refuse)


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p: Any, q: Any) -> Tensor:
    ratio = (p.scale / q.scale).pow(2)
    made: Tensor = 0.5 * (ratio - 1 - ratio.log())
    return made


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p: Any, q: Any) -> Tensor:
    yes = p.probs * (softplus(-q.logits) - softplus(-p.logits))
    no = (1 - p.probs) * (softplus(q.logits) - softplus(p.logits))
    made: Tensor = yes + no
    return made


@register_kl(Geometric, Geometric)
def _geometric(p: Any, q: Any) -> Tensor:
    made: Tensor = -p.entropy() - (-q.probs).log1p() / p.probs - q.logits
    return made


@register_kl(Categorical, Categorical)
def _categorical(p: Any, q: Any) -> Tensor:
    each = p.probs * (p.logits - q.logits)
    each = _plimsoll.where((q.probs == 0).expand(each.shape), _plimsoll.full_like(each, float("inf")), each)
    each = _plimsoll.where((p.probs == 0).expand(each.shape), _plimsoll.zeros_like(each), each)
    return each.sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot(p: Any, q: Any) -> Tensor:
    return _categorical(p._categorical, q._categorical)


@register_kl(Exponential, Exponential)
def _exponential(p: Any, q: Any) -> Tensor:
    ratio = q.rate / p.rate
    made: Tensor = ratio - 1 - ratio.log()
    return made


@register_kl(Laplace, Laplace)
def _laplace(p: Any, q: Any) -> Tensor:
    ratio, apart = p.scale / q.scale, (p.loc - q.loc).abs()
    made: Tensor = -ratio.log() + apart / q.scale + ratio * (-apart / p.scale).exp() - 1
    return made


@register_kl(Uniform, Uniform)
def _uniform(p: Any, q: Any) -> Tensor:
    result = ((q.high - q.low) / (p.high - p.low)).log()
    outside = (q.low > p.low) | (q.high < p.high)
    return _plimsoll.where(outside, _plimsoll.full_like(result, float("inf")), result)


@register_kl(Cauchy, Cauchy)
def _cauchy(p: Any, q: Any) -> Tensor:
    together = ((p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)).log()
    made: Tensor = together - (4 * p.scale * q.scale).log()
    return made


@register_kl(HalfCauchy, HalfCauchy)
def _half_cauchy(p: Any, q: Any) -> Tensor:
    return _cauchy(p._cauchy, q._cauchy)


@register_kl(Gumbel, Gumbel)
def _gumbel(p: Any, q: Any) -> Tensor:
    ratio, shift = p.scale / q.scale, (q.loc - p.loc) / q.scale
    made: Tensor = -ratio.log() - shift + ratio * _EULER + (shift + (1 + ratio).lgamma()).exp() - (1 + _EULER)
    return made


@register_kl(Gamma, Gamma)
def _gamma(p: Any, q: Any) -> Tensor:
    own, other = p.concentration, q.concentration
    scaled = other * (p.rate / q.rate).log() + other.lgamma() - own.lgamma()
    made: Tensor = scaled + (own - other) * own.digamma() + (q.rate - p.rate) * (own / p.rate)
    return made


@register_kl(InverseGamma, InverseGamma)
def _inverse_gamma(p: Any, q: Any) -> Tensor:
    return _gamma(p.base_dist, q.base_dist)


@register_kl(Exponential, Gamma)
def _exponential_gamma(p: Any, q: Any) -> Tensor:
    ratio, other = q.rate / p.rate, q.concentration
    made: Tensor = -other * ratio.log() + ratio + other.lgamma() + other * _EULER - (1 + _EULER)
    return made


@register_kl(Gamma, Exponential)
def _gamma_exponential(p: Any, q: Any) -> Tensor:
    made: Tensor = -p.entropy() - q.rate.log() + q.rate * p.concentration / p.rate
    return made


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p: Any, q: Any) -> Tensor:
    own, other = p.concentration, q.concentration
    total = own.sum(-1)
    norm = total.lgamma() - other.sum(-1).lgamma() + (other.lgamma() - own.lgamma()).sum(-1)
    made: Tensor = norm + ((own - other) * (own.digamma() - total.digamma().unsqueeze(-1))).sum(-1)
    return made


@register_kl(Beta, Beta)
def _beta(p: Any, q: Any) -> Tensor:
    return _dirichlet(p._dirichlet, q._dirichlet)


@register_kl(Poisson, Poisson)
def _poisson(p: Any, q: Any) -> Tensor:
    made: Tensor = p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)
    return made


@register_kl(Binomial, Binomial)
def _binomial(p: Any, q: Any) -> Tensor:
    # From 0 to what both can come to.
    if bool((p.total_count < q.total_count).any()):
        raise NotImplementedError("KL between Binomials where q.total_count > p.total_count is not implemented")
    each = p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p()
    found = p.total_count * each
    more = (p.total_count > q.total_count).expand(found.shape)
    return _plimsoll.where(more, _plimsoll.full_like(found, float("inf")), found)


@register_kl(Pareto, Pareto)
def _pareto(p: Any, q: Any) -> Tensor:
    ratio = q.alpha / p.alpha
    found = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    return _plimsoll.where(p.scale < q.scale, _plimsoll.full_like(found, float("inf")), found)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: Any, q: Any) -> Tensor:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        _refuse(p, q)
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(MultivariateNormal, MultivariateNormal)
def _multivariate_normal(p: Any, q: Any) -> Tensor:
    size = p.event_shape[0]
    inverse = q.precision_matrix
    spread = (inverse @ p.covariance_matrix).diagonal(dim1=-2, dim2=-1).sum(-1)
    apart = (q.loc - p.loc).unsqueeze(-1)
    distance = (apart.mT @ inverse @ apart).squeeze(-1).squeeze(-1)
    made: Tensor = q._half_log_det() - p._half_log_det() + 0.5 * (spread + distance - size)
    return made


@register_kl(Independent, Independent)
def _independent(p: Any, q: Any) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError("kl_divergence: both Independent must reinterpret as many dimensions")
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)
