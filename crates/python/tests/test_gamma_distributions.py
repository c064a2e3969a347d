"""Gamma, Dirichlet, Poisson and binomial draws, how they move with their parameters, and the distributions made of
them, beside closed forms. `conformance/distributions.py` holds them to PyTorch."""

import math

import plimsoll as pm
import pytest
from plimsoll import distributions as d

F64 = pm.float64


def T(value, **options):
    return pm.tensor(value, dtype=F64, **options)


@pytest.mark.parametrize("alpha", [0.05, 0.7, 3.0, 39.0, 41.0, 300.0])
@pytest.mark.parametrize("deviations", [-1.5, -0.3, 0.0, 1.0, 3.0, 4.5])
def test_gamma_draws_move_as_their_distribution_function_says(alpha, deviations):
    value = max(alpha + deviations * math.sqrt(alpha), 0.05 * alpha) + (4 if deviations > 4 else 0)
    above = deviations > 0
    part = pm.special.gammaincc if above else pm.special.gammainc
    step = 1e-5 * alpha
    slope = (part(T(alpha + step), T(value)) - part(T(alpha - step), T(value))).item() / (2 * step)
    density = math.exp((alpha - 1) * math.log(value) - value - math.lgamma(alpha))
    expected = (slope if above else -slope) / density
    assert pm._standard_gamma_grad(T(alpha), T(value)).item() == pytest.approx(expected, rel=2e-5)


@pytest.mark.parametrize("alpha", [0.05, 1.0, 7.0, 200.0])
@pytest.mark.parametrize("x", [1e-4, 0.3, 0.5, 0.6, 0.999])
def test_dirichlet_draws_move_as_a_power_of_a_uniform_one(alpha, x):
    # Of two components, of which the other's concentration is 1, one is a power of a uniform draw.
    expected = -x * math.log(x) / alpha / (1 - x)
    assert pm._dirichlet_grad(T(x), T(alpha), T(alpha + 1)).item() == pytest.approx(expected, rel=1e-9)


def test_gradients_of_means_are_those_of_the_parameters():
    pm.manual_seed(3)
    power, rate = T([0.5, 2.0, 60.0], requires_grad=True), T([1.0, 2.0, 3.0], requires_grad=True)
    d.Gamma(power, rate).rsample((40_000,)).mean(0).sum().backward()
    assert power.grad.tolist() == pytest.approx([1.0, 0.5, 1 / 3], rel=0.03)
    assert rate.grad.tolist() == pytest.approx([-0.5, -0.5, -60 / 9], rel=0.03)
    parts = T([1.0, 2.0, 3.0], requires_grad=True)
    d.Dirichlet(parts).rsample((40_000,))[:, 0].mean().backward()
    # Of c0 / (c0 + c1 + c2).
    assert parts.grad.tolist() == pytest.approx([5 / 36, -1 / 36, -1 / 36], rel=0.05)


def test_once_only():
    power = T([2.0], requires_grad=True)
    (slope,) = pm.autograd.grad(d.Gamma(power, T(1.0)).rsample().sum(), power, create_graph=True)
    with pytest.raises(NotImplementedError, match="the derivative for '_standard_gamma_grad' is not implemented"):
        slope.sum().backward()


WITH_MOMENTS = [
    d.Gamma(T([0.3, 2.0, 90.0]), T([1.0, 0.5, 2.0])),
    d.Chi2(T([1.0, 5.0])),
    d.InverseGamma(T([5.0]), T([2.0])),
    d.Beta(T([0.5, 3.0]), T([0.5, 1.0])),
    d.Dirichlet(T([[0.2, 1.0, 4.0]])),
    d.FisherSnedecor(T([5.0]), T([12.0])),
    d.StudentT(T([6.0]), T([1.0]), T([2.0])),
    d.Poisson(T([0.2, 9.0, 11.0, 400.0])),
    d.Binomial(T([4.0, 50.0, 1000.0]), T([0.9, 0.1, 0.4])),
    d.NegativeBinomial(T([2.0, 9.5]), T([0.5, 0.2])),
    d.Pareto(T([1.0]), T([9.0])),
    d.Weibull(T([2.0]), T([1.5])),
    d.Kumaraswamy(T([2.0]), T([3.0])),
    d.MixtureSameFamily(d.Categorical(T([0.2, 0.8])), d.Normal(T([-3.0, 1.0]), T([1.0, 0.5]))),
]


@pytest.mark.parametrize("of", WITH_MOMENTS, ids=lambda one: type(one).__name__)
def test_draws_have_the_mean_and_variance(of):
    pm.manual_seed(1)
    drawn = of.sample((40_000,))
    assert drawn.shape[1:] == of.mean.shape and not drawn.requires_grad
    apart = (drawn.mean(0) - of.mean).abs() / (of.stddev / 200)
    assert apart.max().item() < 4.5
    assert ((drawn.std(0) - of.stddev).abs() / of.stddev).max().item() < 0.08


# A distribution, a draw, and the logarithm of its density there.
DENSITIES = [
    (d.Gamma(T(2.0), T(3.0)), 1.0, 2 * math.log(3) - 3),
    (d.Chi2(T(2.0)), 2.0, -math.log(2) - 1),
    (d.InverseGamma(T(1.0), T(1.0)), 0.5, -2 + 2 * math.log(2)),
    (d.Beta(T(2.0), T(1.0)), 0.25, math.log(0.5)),
    (d.Dirichlet(T([1.0, 1.0, 1.0])), [0.2, 0.3, 0.5], math.log(2)),
    (d.FisherSnedecor(T(2.0), T(2.0)), 1.0, -math.log(4)),
    (d.StudentT(T(1.0)), 1.0, -math.log(2 * math.pi)),
    (d.Poisson(T(2.0)), 3.0, 3 * math.log(2) - 2 - math.log(6)),
    (d.Binomial(4, T(0.5)), 2.0, math.log(6 / 16)),
    (d.NegativeBinomial(1, T(0.25)), 2.0, math.log(0.75 * 0.0625)),
    (d.HalfCauchy(T(1.0)), 1.0, -math.log(math.pi)),
    (d.Pareto(T(1.0), T(2.0)), 2.0, math.log(2) - 3 * math.log(2)),
    (d.Weibull(T(1.0), T(1.0)), 3.0, -3.0),
    (d.Kumaraswamy(T(1.0), T(2.0)), 0.5, 0.0),
    (d.RelaxedBernoulli(T(1.0), T(0.5)), 0.5, 0.0),
    (d.RelaxedOneHotCategorical(T(1.0), T([1.0, 1.0])), [0.5, 0.5], 0.0),
    (d.MixtureSameFamily(d.Categorical(T([1.0, 1.0])), d.Uniform(T([0.0, 0.0]), T([1.0, 2.0]))), 0.5, math.log(0.75)),
    (d.TransformedDistribution(d.Uniform(T(0.0), T(1.0)), [d.AffineTransform(T(1.0), T(-4.0))]), 0.0, -math.log(4)),
]


@pytest.mark.parametrize("of, value, expected", DENSITIES, ids=lambda one: type(one).__name__)
def test_densities(of, value, expected):
    assert of.log_prob(T(value)).item() == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_a_transform_that_remembers_gives_back_what_it_was_given():
    squashed = d.TransformedDistribution(d.Normal(T(0.0), T(5.0)), [d.TanhTransform(cache_size=1)])
    drawn = squashed.rsample((100,))
    # The inverse hyperbolic tangent of 1 is infinite; what was drawn before it was put through is not.
    assert pm.isfinite(squashed.log_prob(drawn)).all()
    composed = d.ComposeTransform([d.ExpTransform(), d.AffineTransform(1.0, 2.0)])
    x = T([0.0, 1.0])
    assert composed.inv(composed(x)).tolist() == pytest.approx(x.tolist())
    assert composed.log_abs_det_jacobian(x, composed(x)).tolist() == pytest.approx([math.log(2), 1 + math.log(2)])


def test_a_transform_of_ones_own():
    class Doubled(d.transforms.Transform):
        domain = d.constraints.real
        codomain = d.constraints.real
        bijective = True
        sign = +1

        def __init__(self, cache_size=1):
            super().__init__(cache_size=cache_size)

        def _call(self, x):
            return 2 * x

        def _inverse(self, y):
            return y / 2

        def log_abs_det_jacobian(self, x, y):
            return pm.full_like(x, math.log(2))

    doubled, wide = d.TransformedDistribution(d.Normal(T(0.0), T(1.0)), Doubled()), d.Normal(T(0.0), T(2.0))
    assert doubled.log_prob(T(1.5)).item() == pytest.approx(wide.log_prob(T(1.5)).item())


DIVERGENCES = [
    (d.Gamma(T(1.0), T(2.0)), d.Exponential(T(1.0)), math.log(2) - 0.5),
    (d.Exponential(T(2.0)), d.Gamma(T(1.0), T(1.0)), math.log(2) - 0.5),
    (d.Gamma(T(1.0), T(2.0)), d.Gamma(T(1.0), T(1.0)), math.log(2) - 0.5),
    (d.Beta(T(2.0), T(1.0)), d.Beta(T(1.0), T(1.0)), math.log(2) - 0.5),
    (d.Poisson(T(2.0)), d.Poisson(T(1.0)), 2 * math.log(2) - 1),
    (d.Binomial(3, T(0.5)), d.Binomial(3, T(0.25)), 3 * (0.5 * math.log(2) + 0.5 * math.log(0.5 / 0.75))),
    (d.Cauchy(T(0.0), T(1.0)), d.Cauchy(T(0.0), T(3.0)), math.log(16 / 12)),
    (d.Gumbel(T(0.0), T(1.0)), d.Gumbel(T(1.0), T(1.0)), math.e - 2),
]


@pytest.mark.parametrize("p, q, expected", DIVERGENCES, ids=lambda one: type(one).__name__)
def test_divergences(p, q, expected):
    assert d.kl_divergence(p, q).item() == pytest.approx(expected, rel=1e-9)


def test_a_class_below_another_is_not_of_its_kind():
    with pytest.raises(NotImplementedError, match="p type LogNormal and q type Normal"):
        d.kl_divergence(d.LogNormal(0.0, 1.0), d.Normal(0.0, 1.0))


def test_what_is_refused():
    with pytest.raises(ValueError, match="concentration .* GreaterThan"):
        d.Gamma(-1.0, 1.0)
    with pytest.raises(ValueError, match="support"):
        d.Beta(1.0, 1.0).log_prob(pm.tensor(2.0))
    with pytest.raises(RuntimeError, match="invalid Poisson rate"):
        pm.poisson(pm.tensor([-1.0]))
    with pytest.raises(ValueError, match="floating-point"):
        pm.binomial(pm.tensor([1]), pm.tensor([0.5]))


def test_a_dry_run_draws_and_goes_back_without_values():
    dry = pm.device("dry:h200")
    for of, count in ((d.Normal, 2), (d.Uniform, 2), (d.Gamma, 2), (d.Beta, 2), (d.StudentT, 3)):
        given = [pm.full((3,), 1.0 + at, device=dry, requires_grad=True) for at in range(count)]
        drawn = of(*given).rsample((2,))
        (drawn.sum() + of(*given).log_prob(drawn).sum()).backward()
        assert drawn.shape == (2, 3) and given[0].grad.shape == (3,)
    assert d.Poisson(pm.ones(3, device=dry)).sample().shape == pm.binomial(pm.ones(3, device=dry), pm.ones(3, device=dry)).shape


def test_transforms_with_parameters_of_their_own_make_the_batch_larger():
    pm.manual_seed(0)
    for transform in (d.AffineTransform(pm.zeros(3), 1.0), d.PowerTransform(pm.ones(3))):
        made = d.TransformedDistribution(d.Exponential(1.0), transform)
        assert tuple(made.batch_shape) == (3,) and tuple(made.sample((2,)).shape) == (2, 3)
        # Each is a draw of its own.
        assert len(set(made.sample().tolist())) == 3
    event = d.TransformedDistribution(d.Normal(pm.zeros(3), 1.0), d.AffineTransform(pm.zeros(2, 3), 1.0, event_dim=1))
    assert (tuple(event.batch_shape), tuple(event.event_shape)) == ((2,), (3,))
    assert event.log_prob(pm.zeros(2, 3)).tolist() == pytest.approx([-1.5 * math.log(2 * math.pi)] * 2)


def test_larger_batches():
    for made in (
        d.Gamma(2.0, 4.0), d.Chi2(3.0), d.Beta(1.0, 2.0), d.Binomial(3, pm.tensor(0.5)), d.StudentT(5.0), d.HalfCauchy(1.0),
        d.RelaxedBernoulli(pm.tensor(0.5), pm.tensor(0.3)), d.TransformedDistribution(d.Normal(0.0, 1.0), d.SigmoidTransform()),
        d.MixtureSameFamily(d.Categorical(pm.ones(2)), d.Beta(pm.ones(2), pm.ones(2))),
    ):  # fmt: skip
        larger = made.expand((4,))
        assert type(larger) is type(made) and tuple(larger.batch_shape) == (4,) and tuple(made.batch_shape) == ()
        value = pm.tensor(1.0) if isinstance(made, d.Binomial) else pm.tensor(0.5)
        assert larger.log_prob(value).tolist() == [made.log_prob(value).item()] * 4
        assert larger.sample((2,)).shape == (2, 4)
    for vector in (d.Dirichlet(pm.ones(3)), d.RelaxedOneHotCategorical(pm.tensor(0.5), pm.ones(3)), d.Independent(d.Beta(pm.ones(3), 1.0), 1)):
        assert vector.expand((4,)).sample((2,)).shape == (2, 4, 3)

    class Own(d.Normal):
        def __init__(self):
            super().__init__(0.0, 1.0)

    with pytest.raises(NotImplementedError, match="must also define a custom .expand"):
        Own().expand((2,))


def test_values_that_cannot_be_drawn_have_no_probability():
    for made in (d.HalfCauchy(1.0), d.Pareto(1.0, 2.0), d.Weibull(1.0, 3.0), d.Kumaraswamy(1.0, 2.0), d.InverseGamma(1.0, 1.0)):
        with pytest.raises(ValueError, match="within the support"):
            made.cdf(pm.tensor(-0.5))
    assert d.InverseGamma(1.0, 1.0).cdf(pm.tensor(0.0)).item() == 0.0
    with pytest.raises(ValueError, match="not broadcastable with batch_shape"):
        d.Gamma(pm.ones(3), 1.0).log_prob(pm.ones(2))


def test_what_is_no_parameter_ends_too():
    nan, inf = math.nan, math.inf
    tiny = pm.finfo(pm.float32).tiny
    assert pm._standard_gamma(pm.tensor([nan, -1.0, inf, 0.0])).tolist() == [tiny, tiny, inf, 0.0]
    assert pm.binomial(pm.tensor([5.0, nan, inf]), pm.tensor([nan, 0.5, 0.5])).isnan().all()
    for rate in (nan, -1.0):
        with pytest.raises(RuntimeError, match="expected rate to be non-negative"):
            pm.poisson(pm.tensor([1.0, rate]))
