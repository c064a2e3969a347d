"""First values: bounds, deviations and shapes. Expected values are PyTorch's."""

import math
import warnings

import plimsoll
import pytest
from plimsoll import nn
from plimsoll.nn import init


def drawn(function, *args, shape=(100, 200), **kwargs):
    return function(plimsoll.empty(*shape), *args, **kwargs)


@pytest.mark.parametrize(
    ("name", "kwargs", "bound"),
    [
        ("xavier_uniform_", {}, math.sqrt(6 / 300)),
        ("xavier_uniform_", {"gain": 2.0}, 2 * math.sqrt(6 / 300)),
        ("kaiming_uniform_", {}, math.sqrt(6 / 200)),
        ("kaiming_uniform_", {"a": math.sqrt(5)}, 1 / math.sqrt(200)),
        ("kaiming_uniform_", {"mode": "fan_out", "nonlinearity": "relu"}, math.sqrt(6 / 100)),
        ("uniform_", {"a": -2.0, "b": 2.0}, 2.0),
    ],
)
def test_uniform_values_fill_their_bounds(name, kwargs, bound):
    values = drawn(getattr(init, name), **kwargs)
    assert bound * 0.99 < values.abs().max().item() <= bound * (1 + 1e-6)
    assert values.std().item() == pytest.approx(bound / math.sqrt(3), rel=0.03)
    assert abs(values.mean().item()) < bound * 0.03


@pytest.mark.parametrize(
    ("name", "kwargs", "deviation"),
    [
        ("normal_", {"std": 3.0}, 3.0),
        ("xavier_normal_", {}, math.sqrt(2 / 300)),
        ("kaiming_normal_", {}, math.sqrt(2 / 200)),
        ("kaiming_normal_", {"mode": "fan_out", "nonlinearity": "tanh"}, 5 / 3 / math.sqrt(100)),
        ("trunc_normal_", {}, 0.8796),
    ],
)
def test_normal_values_have_their_deviation(name, kwargs, deviation):
    values = drawn(getattr(init, name), **kwargs)
    assert values.std().item() == pytest.approx(deviation, rel=0.03)
    assert abs(values.mean().item()) < deviation * 0.04


def test_truncated_values_stay_inside():
    values = drawn(init.trunc_normal_, 0.5, 2.0, 0.0, 1.0)
    assert 0.0 <= values.min().item() and values.max().item() <= 1.0


@pytest.mark.parametrize("dtype", [plimsoll.float32, plimsoll.float64, plimsoll.bfloat16, plimsoll.float16])
@pytest.mark.parametrize("sign", [1, -1])
def test_truncated_values_of_a_mean_far_outside_lie_at_the_nearer_end(dtype, sign):
    plimsoll.manual_seed(3)
    with pytest.warns(UserWarning, match="more than 2 std"):
        values = init.trunc_normal_(plimsoll.empty(5000, dtype=dtype), mean=sign * 10, std=1, a=-2, b=2)
    values = sign * values.double()
    assert -2 <= values.min().item() and values.max().item() <= 2
    # The tail of a normal distribution at 8 deviations: its mean is density / (1 - distribution) from there.
    assert values.mean().item() == pytest.approx(10 - 8.1213, abs=0.01)
    assert values.std().item() == pytest.approx(0.119, abs=0.01)


def test_a_dry_run_draws_nothing_far_outside():
    with pytest.warns(UserWarning, match="more than 2 std"):
        assert init.trunc_normal_(plimsoll.empty(5, device="dry:h200"), mean=10).shape == (5,)


def test_gains():
    assert init.calculate_gain("relu") == math.sqrt(2)
    assert init.calculate_gain("tanh") == 5 / 3
    assert init.calculate_gain("leaky_relu", 0.2) == math.sqrt(2 / 1.04)
    assert init.calculate_gain("selu") == 0.75 and init.calculate_gain("conv2d") == 1
    with pytest.raises(ValueError, match="Unsupported nonlinearity"):
        init.calculate_gain("nothing")


@pytest.mark.parametrize("shape", [(5, 8), (8, 5), (4, 3, 2)])
def test_orthogonal_rows_or_columns(shape):
    values = drawn(init.orthogonal_, gain=2.0, shape=shape).reshape(shape[0], -1)
    rows, columns = values.shape
    product = values @ values.T if rows <= columns else values.T @ values
    assert plimsoll.allclose(product, 4 * plimsoll.eye(min(rows, columns)), atol=1e-4)


def test_values_that_are_not_drawn():
    assert init.eye_(plimsoll.empty(2, 3)).tolist() == [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    kernel = init.dirac_(plimsoll.empty(2, 2, 3))
    assert kernel.tolist() == [[[0.0, 1.0, 0.0], [0.0] * 3], [[0.0] * 3, [0.0, 1.0, 0.0]]]
    assert init.constant_(plimsoll.empty(2), 3.0).tolist() == [3.0, 3.0]
    sparse = drawn(init.sparse_, 0.25, shape=(8, 5))
    assert [(column == 0).sum().item() for column in sparse.T] == [2] * 5


def test_what_has_no_fan_is_refused():
    with pytest.raises(ValueError, match="Fan in and fan out can not be computed"):
        init.xavier_uniform_(plimsoll.empty(3))
    with pytest.raises(ValueError, match="Only tensors with 2 dimensions are supported"):
        init.eye_(plimsoll.empty(3))
    with pytest.raises(ValueError, match="not supported, please use one of"):
        init.kaiming_normal_(plimsoll.empty(2, 2), mode="fan")
    with pytest.warns(FutureWarning, match="deprecated in favor of"):
        init.normal(plimsoll.empty(2))


def test_first_values_record_nothing():
    weight = nn.Parameter(plimsoll.empty(2, 2))
    assert init.normal_(weight) is weight and weight.grad_fn is None and weight.requires_grad


@pytest.mark.parametrize(
    ("module", "name", "bound"),
    [
        (lambda: nn.Linear(64, 64), "weight", 1 / 8),
        (lambda: nn.Conv2d(8, 32, 3), "weight", 1 / math.sqrt(72)),
        (lambda: nn.LSTM(16, 25), "weight_ih_l0", 1 / 5),
        (lambda: nn.MultiheadAttention(32, 4), "in_proj_weight", math.sqrt(6 / 128)),
        (lambda: nn.Bilinear(16, 16, 16), "weight", 1 / 4),
    ],
)
def test_layers_begin_within_pytorchs_bounds(module, name, bound):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        weight = getattr(module(), name)
    assert bound * 0.97 < weight.abs().max().item() <= bound * (1 + 1e-6)
    assert weight.std().item() == pytest.approx(bound / math.sqrt(3), rel=0.06)
