"""ASGD and Adafactor by their formulas, in numpy; PyTorch's own values are in the golden file."""

import math

import numpy
import plimsoll
import pytest
from plimsoll import nn, optim


def run(kind, first, grads, **options):
    param = nn.Parameter(plimsoll.tensor(first, dtype=plimsoll.float64))
    optimizer = kind([param], **options)
    for grad in grads:
        param.grad = plimsoll.tensor(grad, dtype=plimsoll.float64)
        optimizer.step()
    return param, optimizer


GRADS = numpy.array([[0.5, -1.0], [0.25, 2.0], [-0.75, 0.125], [1.5, -0.5]])


def test_asgd_falls_back_to_a_mean():
    x, mean, eta, mu, lr, lambd, alpha, t0 = numpy.array([1.0, -2.0]), 0.0, 0.1, 1.0, 0.1, 0.01, 0.75, 1
    param, optimizer = run(optim.ASGD, x, GRADS, lr=lr, lambd=lambd, t0=t0, weight_decay=0.5)
    for step, grad in enumerate(GRADS, 1):
        grad = grad + 0.5 * x
        x = x * (1 - lambd * eta) - eta * grad
        mean = x if mu == 1 else mean + mu * (x - mean)
        eta, mu = lr / (1 + lambd * lr * step) ** alpha, 1 / max(1, step - t0)
    kept = optimizer.state[param]
    assert param.tolist() == pytest.approx(x.tolist(), rel=1e-6)
    assert kept["ax"].tolist() == pytest.approx(mean.tolist(), rel=1e-6)
    assert (kept["step"].item(), kept["mu"].item()) == (4, pytest.approx(1 / 3))


def test_asgd_that_is_differentiable_gives_the_gradient_of_its_rate():
    first = plimsoll.tensor([2.0], requires_grad=True)
    param = first.clone()
    optimizer = optim.ASGD([param], lr=0.1, lambd=0.0, differentiable=True)
    param.grad = first * 3
    optimizer.step()
    param.sum().backward()
    assert first.grad.item() == pytest.approx(1 - 0.1 * 3)


def test_adafactor_of_a_matrix_keeps_its_rows_and_columns():
    x, grads, lr, eps = numpy.array([[1.0, 2.0, -1.0], [0.5, -3.0, 4.0]]), [], 0.05, 1e-3
    grads = [numpy.outer(row, [1.0, -2.0, 0.5]) for row in GRADS]
    param, optimizer = run(optim.Adafactor, x, grads, lr=lr, weight_decay=0.1)
    rows, columns = numpy.zeros((2, 1)), numpy.zeros((1, 3))
    for step, grad in enumerate(grads, 1):
        share = step**-0.8
        size = max(eps, numpy.linalg.norm(x) / 6**0.5) * min(lr, 1 / step**0.5)
        x = x * (1 - lr * 0.1)
        rows += share * ((grad**2).mean(1, keepdims=True) - rows)
        columns += share * ((grad**2).mean(0, keepdims=True) - columns)
        update = grad / numpy.sqrt(rows @ columns / rows.mean())
        x = x - size / max(1.0, numpy.linalg.norm(update) / 6**0.5) * update
    kept = optimizer.state[param]
    assert numpy.allclose(param.detach().numpy(), x, rtol=1e-9)
    assert sorted(kept) == ["col_var", "row_var", "step"]
    assert sum(value.numel() for value in kept.values()) == 2 + 3 + 1


def test_what_they_keep_is_booked_and_let_go():
    device = plimsoll.private_cpu()
    for kind in (optim.ASGD, optim.Adafactor):
        param = nn.Parameter(plimsoll.ones(64, 64, device=device))
        optimizer = kind([param])
        param.grad = plimsoll.ones_like(param)
        optimizer.step()
        assert plimsoll.memory_by_kind(device)["optimizer state"] > 0
        optimizer.load_state_dict(optimizer.state_dict())
        optimizer.step()
        del param, optimizer
        assert plimsoll.memory_allocated(device) == 0


@pytest.mark.parametrize(
    ("options", "said"),
    [({"lr": -1.0}, "Learning rate"), ({"beta2_decay": 1.0}, "beta2_decay"), ({"d": 0.5}, "Clipping threshold")],
)
def test_adafactor_refuses(options, said):
    with pytest.raises(ValueError, match=said):
        optim.Adafactor([nn.Parameter(plimsoll.ones(1))], **options)


# The first six values after five steps in PyTorch 2.15, rounded: bfloat16 has three digits of each step of 0.001 or 0.1.
MUON = [
    ({}, (3, 5), [-0.001, 0.8397, 0.9046, 0.1421, -0.7559, -0.9557]),
    ({}, (5, 3), [-0.0012, 0.8372, 0.9085, 0.142, -0.7545, -0.9569]),
    ({"nesterov": False, "momentum": 0.5}, (4, 4), [0.0009, 0.8387, 0.9061, 0.1419, -0.7546, -0.9542]),
    ({"adjust_lr_fn": "match_rms_adamw"}, (3, 5), [-0.0004, 0.8404, 0.907, 0.1416, -0.7562, -0.9573]),
    ({"adjust_lr_fn": "spectral_unclamped", "weight_decay": 0.0}, (3, 5), [-0.0007, 0.8404, 0.9061, 0.142, -0.7564, -0.9569]),
    ({"lr": 0.1, "ns_steps": 2}, (5, 3), [-0.2259, 0.4187, 0.6715, 0.2123, -0.4408, -0.6839]),
]


@pytest.mark.parametrize("options, shape, expected", MUON)
def test_muon(options, shape, expected):
    values = [math.sin(i) for i in range(shape[0] * shape[1])]
    param = plimsoll.tensor(values).reshape(shape).requires_grad_()
    optimizer = optim.Muon([param], **options)
    for step in range(5):
        optimizer.zero_grad()
        ((param * param * (step + 1)).sum() + param.cos().sum()).backward()
        optimizer.step()
    assert param.flatten()[:6].tolist() == pytest.approx(expected, abs=0.00015 if options.get("lr") is None else 0.003)
    assert list(optimizer.state_dict()["state"][0]) == ["momentum_buffer"]


def test_muon_takes_matrices_alone():
    with pytest.raises(ValueError, match="Muon only supports 2D parameters"):
        optim.Muon([plimsoll.ones(2, requires_grad=True)])
    with pytest.raises(ValueError, match="is not supported"):
        optim.Muon([plimsoll.ones(2, 2, requires_grad=True)], adjust_lr_fn="x")
    with pytest.raises(ValueError, match="momentum should be >= 0"):
        optim.Muon([plimsoll.ones(2, 2, requires_grad=True)], momentum=-1)
