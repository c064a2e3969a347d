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


# What PyTorch 2.15 says of them: the support, and the constraints of the parameters.
SAID = [
    (lambda: d.Normal(pm.zeros(2), pm.ones(2)), "Real()", "{'loc': Real(), 'scale': GreaterThan(lower_bound=0.0)}"),
    (lambda: d.LogNormal(0.0, 1.0), "GreaterThan(lower_bound=0.0)", "{'loc': Real(), 'scale': GreaterThan(lower_bound=0.0)}"),
    (lambda: d.HalfNormal(1.0), "GreaterThanEq(lower_bound=0.0)", "{'scale': GreaterThan(lower_bound=0.0)}"),
    (
        lambda: d.Uniform(0.0, 1.0),
        "Interval(lower_bound=0.0, upper_bound=1.0)",
        "{'low': LessThan(upper_bound=1.0), 'high': GreaterThan(lower_bound=0.0)}",
    ),
    (lambda: d.Bernoulli(0.3), "Boolean()", "{'probs': Interval(lower_bound=0.0, upper_bound=1.0), 'logits': Real()}"),
    (
        lambda: d.Categorical(logits=pm.zeros(3)),
        "IntegerInterval(lower_bound=0, upper_bound=2)",
        "{'probs': Simplex(), 'logits': IndependentConstraint(Real(), 1)}",
    ),
    (lambda: d.OneHotCategorical(pm.ones(3)), "OneHot()", "{'probs': Simplex(), 'logits': IndependentConstraint(Real(), 1)}"),
    (lambda: d.Multinomial(5, pm.ones(2)), "Multinomial()", "{'probs': Simplex(), 'logits': IndependentConstraint(Real(), 1)}"),
    (
        lambda: d.Binomial(5, T(0.3)),
        "IntegerInterval(lower_bound=0, upper_bound=5.0)",
        "{'total_count': IntegerGreaterThan(lower_bound=0), 'probs': Interval(lower_bound=0.0, upper_bound=1.0), 'logits': Real()}",
    ),
    (lambda: d.Dirichlet(pm.ones(2)), "Simplex()", "{'concentration': IndependentConstraint(GreaterThan(lower_bound=0.0), 1)}"),
    (
        lambda: d.MultivariateNormal(pm.zeros(2), pm.eye(2)),
        "IndependentConstraint(Real(), 1)",
        "{'loc': IndependentConstraint(Real(), 1), 'covariance_matrix': PositiveDefinite(), "
        "'precision_matrix': PositiveDefinite(), 'scale_tril': LowerCholesky()}",
    ),
    (lambda: d.Independent(d.Normal(pm.zeros(2), 1.0), 1), "IndependentConstraint(Real(), 1)", "{}"),
    (lambda: d.Pareto(1.0, 2.0), "GreaterThanEq(lower_bound=1.0)", "{'alpha': GreaterThan(lower_bound=0.0), 'scale': GreaterThan(lower_bound=0.0)}"),
    (
        lambda: d.MixtureSameFamily(d.Categorical(pm.ones(2)), d.Gamma(pm.ones(2), 1.0)),
        "MixtureSameFamilyConstraint(GreaterThanEq(lower_bound=0.0))",
        "{}",
    ),
    (
        lambda: d.TransformedDistribution(d.Independent(d.Normal(pm.zeros(3), 1.0), 1), [d.ExpTransform()]),
        "IndependentConstraint(GreaterThan(lower_bound=0.0), 1)",
        "{}",
    ),
]


@pytest.mark.parametrize("of, support, parameters", SAID, ids=[str(at) for at in range(len(SAID))])
def test_what_is_said_of_draws_and_parameters(of, support, parameters):
    assert repr(of().support) == support and repr(of().arg_constraints) == parameters


@pytest.mark.parametrize(
    "of, named",
    [
        (lambda: d.Normal(0.0, -1.0), "parameter scale"),
        (lambda: d.Uniform(1.0, 0.0), r"parameter low .* LessThan\(upper_bound=0.0\)"),
        (lambda: d.Categorical(T([0.0, 0.0])), r"parameter probs .* Simplex\(\)"),
        (lambda: d.MultivariateNormal(pm.zeros(2), -pm.eye(2)), r"covariance_matrix .* PositiveDefinite\(\)"),
        (lambda: d.MultivariateNormal(pm.zeros(2), scale_tril=pm.ones(2, 2)), r"scale_tril .* LowerCholesky\(\)"),
        (lambda: d.Geometric(0.0), "parameter probs .* to be positive"),
        (lambda: d.Chi2(-1.0), "parameter df"),
        (lambda: d.OneHotCategorical(pm.ones(2)).log_prob(pm.ones(2)), r"support \(OneHot\(\)\)"),
        (lambda: d.Multinomial(3, pm.ones(2)).log_prob(4 * pm.ones(2)), r"support \(Multinomial\(\)\)"),
        (lambda: d.Exponential(1.0).cdf(T(-1.0)), "within the support"),
        (lambda: d.Uniform(1.0, 2.0).cdf(T(-1.0)), "within the support"),
        (lambda: d.LogNormal(0.0, 1.0).cdf(T(-1.0)), r"Real\(\)"),
    ],
)
def test_what_is_not_allowed(of, named):
    with pytest.raises(ValueError, match=named):
        of()


def test_a_class_of_ones_own_says_what_is_allowed():
    class Doubled(d.Distribution):
        arg_constraints = {"rate": d.constraints.positive}
        support = d.constraints.nonnegative_integer

        def __init__(self, rate, validate_args=None):
            (self.rate,) = d.utils.broadcast_all(rate)
            super().__init__(self.rate.shape, validate_args=validate_args)

        def log_prob(self, value):
            if self._validate_args:
                self._validate_sample(value)
            return -self.rate * value

    assert repr(Doubled(2)) == "Doubled(rate: 2.0)" and Doubled(2.0).log_prob(T(3.0)).item() == -6.0
    with pytest.raises(ValueError, match="Expected parameter rate"):
        Doubled(-1.0)
    assert Doubled(-1.0, validate_args=False).rate.item() == -1.0
    with pytest.raises(ValueError, match="Expected value argument"):
        Doubled(1.0).log_prob(T(0.5))
    with pytest.raises(NotImplementedError, match="custom .expand"):
        Doubled(1.0).expand((2,))


def test_a_class_that_says_nothing_is_told():
    class Silent(d.Distribution):
        pass

    with pytest.warns(UserWarning, match="does not define `arg_constraints`"):
        of = Silent()
    with pytest.warns(UserWarning, match="does not define `support`"):
        of._validate_sample(T(1.0))
    with pytest.raises(NotImplementedError):
        of.support


def test_constraints_of_a_class_depend():
    support = d.Uniform.support
    assert d.constraints.is_dependent(support) and not support.is_discrete and support.event_dim == 0
    assert d.Normal.support is d.constraints.real
    with pytest.raises(NotImplementedError, match="statically"):
        d.Independent.support.is_discrete


def test_constraints_of_matrices_and_of_parts():
    checked = d.constraints.positive_definite.check(T([[[1.0, 0.0], [0.0, 1.0]], [[1.0, 2.0], [2.0, 1.0]], [[1.0, 0.5], [0.0, 1.0]]]))
    assert checked.tolist() == [True, False, False]
    assert d.constraints.positive_semidefinite.check(pm.zeros(2, 2)).item() and not d.constraints.square.check(pm.zeros(2, 3)).item()
    both = [d.constraints.real, d.constraints.positive]
    assert d.constraints.cat(both, lengths=[1, 2]).check(T([1.0, -2.0, 3.0])).tolist() == [True, False, True]
    assert d.constraints.stack(both).check(T([[1.0, -2.0], [3.0, -1.0]])).tolist() == [[True, True], [True, False]]


def test_the_parameter_that_was_asked_for_is_shown():
    of = d.Categorical(logits=pm.zeros(3))
    assert repr(of) == f"Categorical(logits: {pm.Size([3])})"
    assert of.probs is of.probs and repr(of) == f"Categorical(probs: {pm.Size([3])}, logits: {pm.Size([3])})"
    assert repr(d.HalfNormal(1.0)) == "HalfNormal()" and repr(d.Beta(1.0, 2.0)) == "Beta()"


def test_the_entropy_of_counts():
    # PyTorch's: torch.distributions.Multinomial(5, torch.tensor([0.3, 0.7])).entropy()
    assert d.Multinomial(5, T([0.3, 0.7])).entropy().item() == pytest.approx(1.4136, abs=5e-5)
    listed = d.OneHotCategorical(pm.ones(2)).enumerate_support()
    assert listed.tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_a_binomials_gradient_at_even_odds():
    logits = pm.tensor(0.0, requires_grad=True)
    (slope,) = pm.autograd.grad(d.Binomial(1.0, logits=logits).log_prob(pm.tensor(0.0)), logits)
    assert slope.item() == -0.5


def test_parameters_that_follow_from_others_keep_gradients():
    matrix = pm.eye(2, requires_grad=True)
    normal = d.MultivariateNormal(pm.zeros(2), matrix)
    with pm.no_grad():
        assert normal.scale_tril.requires_grad
    normal.scale_tril.sum().backward()
    assert matrix.grad.tolist() == [[0.5, 0.5], [0.5, 0.5]]


def test_expanded_distributions_keep_their_class():
    class Own(d.Independent):
        pass

    class WithArguments(d.Independent):
        def __init__(self):
            super().__init__(d.Normal(pm.zeros(3), 1.0), 1)

    made = Own(d.Normal(pm.zeros(3), 1.0), 1).expand((2,))
    assert type(made) is Own and (made.batch_shape, made.event_shape) == ((2,), (3,))
    with pytest.raises(NotImplementedError, match="must also define a custom .expand"):
        WithArguments().expand((2,))


def test_no_draw_of_a_beta_distribution_is_an_end():
    for dtype in (pm.float32, pm.float64):
        small = pm.tensor(1e-2, dtype=dtype)
        drawn = d.Beta(small, small).sample([2000])
        assert 0 < drawn.min().item() and drawn.max().item() < 1
