"""Distributions beside closed forms: PyTorch 2.15's numbers, and draws against means and variances."""

import math

import plimsoll as pm
import pytest
from plimsoll import distributions as d

T = pm.tensor
# A distribution, a draw, and the logarithm of its density there.
DENSITIES = [
    (d.Normal(T(1.0), T(2.0)), 0.0, -0.5 * 0.25 - math.log(2) - 0.5 * math.log(2 * math.pi)),
    (d.LogNormal(T(0.0), T(1.0)), math.e, -0.5 - 0.5 * math.log(2 * math.pi) - 1),
    (d.HalfNormal(T(1.0)), 1.0, math.log(2) - 0.5 - 0.5 * math.log(2 * math.pi)),
    (d.Bernoulli(T(0.25)), 1.0, math.log(0.25)),
    (d.Bernoulli(logits=T(0.0)), 0.0, math.log(0.5)),
    (d.Geometric(T(0.5)), 3.0, 4 * math.log(0.5)),
    (d.Uniform(T(0.0), T(4.0)), 1.0, -math.log(4)),
    (d.Exponential(T(2.0)), 1.0, math.log(2) - 2),
    (d.Laplace(T(0.0), T(1.0)), 2.0, -math.log(2) - 2),
    (d.Cauchy(T(0.0), T(1.0)), 1.0, -math.log(2 * math.pi)),
    (d.Gumbel(T(0.0), T(1.0)), 0.0, -1.0),
    (d.Categorical(T([1.0, 3.0])), 1, math.log(0.75)),
]


@pytest.mark.parametrize("of, value, expected", DENSITIES, ids=lambda one: type(one).__name__)
def test_densities(of, value, expected):
    assert of.log_prob(T(value)).item() == pytest.approx(expected, rel=1e-5, abs=1e-6)


WITH_MOMENTS = [of for of, *_ in DENSITIES if not isinstance(of, (d.Cauchy, d.Categorical))]


@pytest.mark.parametrize("of", WITH_MOMENTS, ids=lambda one: type(one).__name__)
def test_draws_have_the_mean_and_variance(of):
    pm.manual_seed(1)
    drawn = of.sample((40_000,))
    assert drawn.shape == (40_000,) and not drawn.requires_grad
    deviation = of.stddev.item()
    assert drawn.mean().item() == pytest.approx(of.mean.item(), abs=4 * deviation / 200)
    if not isinstance(of, d.LogNormal):  # its fourth moment is too large for this many draws
        assert drawn.std().item() == pytest.approx(deviation, rel=0.05)


def test_draws_of_categories():
    pm.manual_seed(2)
    of = d.Categorical(T([[0.0, 1.0, 0.0], [0.5, 0.0, 0.5]]))
    drawn = of.sample((1000,))
    assert drawn.shape == (1000, 2) and (drawn[:, 0] == 1).all() and set(drawn[:, 1].tolist()) == {0, 2}
    hot = d.OneHotCategorical(T([0.2, 0.8])).sample((7,))
    assert hot.shape == (7, 2) and hot.sum().item() == 7
    counts = d.Multinomial(10, T([0.5, 0.5])).sample((3,))
    assert counts.sum(-1).tolist() == [10.0] * 3


def test_gradients_reach_the_parameters():
    loc, scale = T(1.0, requires_grad=True), T(2.0, requires_grad=True)
    drawn = d.Normal(loc, scale).rsample((100,))
    drawn.sum().backward()
    assert loc.grad.item() == 100 and scale.grad.item() == pytest.approx(((drawn.detach() - 1) / 2).sum().item(), rel=1e-4)
    logits = T([0.0, 0.0], requires_grad=True)
    (-d.Categorical(logits=logits).log_prob(T(0))).backward()
    assert logits.grad.tolist() == pytest.approx([-0.5, 0.5])


DIVERGENCES = [
    (d.Normal(T(1.0), T(1.0)), d.Normal(T(0.0), T(1.0)), 0.5),
    (d.Bernoulli(T(0.5)), d.Bernoulli(T(0.25)), 0.5 * math.log(2) + 0.5 * math.log(0.5 / 0.75)),
    (d.Categorical(T([0.5, 0.5])), d.Categorical(T([0.25, 0.75])), 0.5 * math.log(2) + 0.5 * math.log(0.5 / 0.75)),
    (d.Exponential(T(1.0)), d.Exponential(T(2.0)), 1 - math.log(2)),
    (d.Uniform(T(0.0), T(1.0)), d.Uniform(T(0.0), T(2.0)), math.log(2)),
    (d.MultivariateNormal(pm.ones(2), pm.eye(2)), d.MultivariateNormal(pm.zeros(2), pm.eye(2)), 1.0),
]


@pytest.mark.parametrize("p, q, expected", DIVERGENCES, ids=lambda one: type(one).__name__)
def test_divergences(p, q, expected):
    assert d.kl_divergence(p, q).item() == pytest.approx(expected, rel=1e-5)


def test_vectors_and_independent_parts():
    covariance = T([[2.0, 0.5], [0.5, 1.0]])
    of = d.MultivariateNormal(pm.zeros(2), covariance)
    determinant = 1.75
    quadratic = (1 * 1 + 2 * 1 - 2 * 0.5) / determinant
    expected = -0.5 * (2 * math.log(2 * math.pi) + math.log(determinant) + quadratic)
    assert of.log_prob(pm.ones(2)).item() == pytest.approx(expected, rel=1e-5)
    joint = d.Independent(d.Normal(pm.zeros(3), pm.ones(3)), 1)
    assert joint.event_shape == (3,) and joint.log_prob(pm.zeros(3)).item() == pytest.approx(-1.5 * math.log(2 * math.pi))


def test_wrong_parameters_and_draws_are_refused():
    with pytest.raises(ValueError, match="parameter scale"):
        d.Normal(T([0.0]), T([-1.0]))
    with pytest.raises(ValueError, match="parameter probs"):
        d.Bernoulli(T([2.0]))
    with pytest.raises(ValueError, match="not both"):
        d.Categorical(T([0.5, 0.5]), logits=T([0.0, 0.0]))
    with pytest.raises(ValueError, match="within the support"):
        d.Categorical(T([0.5, 0.5])).log_prob(T(2))
    with pytest.raises(NotImplementedError, match="No KL"):
        d.kl_divergence(d.Normal(T(0.0), T(1.0)), d.Bernoulli(T(0.5)))
    assert d.Normal(T([0.0]), T([-1.0]), validate_args=False).scale.item() == -1
