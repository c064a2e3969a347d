"""Schedulers and averages of weights. Expected values are PyTorch's (2.15); `cargo xtask conformance training` compares all
schedulers over 60 steps."""

import warnings

import plimsoll
import pytest
from plimsoll import nn, optim
from plimsoll.optim import lr_scheduler, swa_utils


def made(**options):
    param = nn.Parameter(plimsoll.ones(2))
    return optim.SGD([param], lr=0.1, **options)


def rates(optimizer, scheduler, steps):
    found = []
    for _ in range(steps):
        optimizer.step()
        scheduler.step()
        found += scheduler.get_last_lr()
    return found


FIVE_STEPS = [
    (lambda o: lr_scheduler.StepLR(o, 2, 0.5), [0.1, 0.05, 0.05, 0.025, 0.025]),
    (lambda o: lr_scheduler.MultiStepLR(o, [1, 3, 3]), [0.01, 0.01, 0.0001, 0.0001, 0.0001]),
    (lambda o: lr_scheduler.LambdaLR(o, lambda e: 1 / (1 + e)), [0.05, 0.1 / 3, 0.025, 0.02, 0.1 / 6]),
    (lambda o: lr_scheduler.LinearLR(o, 0.5, total_iters=4), [0.0625, 0.075, 0.0875, 0.1, 0.1]),
    (lambda o: lr_scheduler.PolynomialLR(o, 4, 2.0), [0.05625, 0.025, 0.00625, 0.0, 0.0]),
    (lambda o: lr_scheduler.CosineAnnealingLR(o, 4), [0.08535533905932738, 0.05, 0.014644660940672622, 0.0, 0.014644660940672622]),
]


@pytest.mark.parametrize(("make", "expected"), FIVE_STEPS)
def test_five_steps_are_pytorchs(make, expected):
    optimizer = made()
    assert rates(optimizer, make(optimizer), 5) == pytest.approx(expected, abs=1e-12)


def test_a_plateau_lowers_the_rates():
    optimizer = made()
    scheduler = lr_scheduler.ReduceLROnPlateau(optimizer, patience=1, factor=0.5)
    found = []
    for loss in (1.0, 0.9, 0.9, 0.9, 0.9, 0.9):
        scheduler.step(plimsoll.tensor(loss))
        found += scheduler.get_last_lr()
    assert found == [0.1, 0.1, 0.1, 0.05, 0.05, 0.025]
    with pytest.raises(ValueError, match="mode best is unknown!"):
        lr_scheduler.ReduceLROnPlateau(optimizer, "best")


def test_one_cycle_moves_the_momentum_the_other_way():
    optimizer = made(momentum=0.9)
    scheduler = lr_scheduler.OneCycleLR(optimizer, 1.0, total_steps=10)
    found = [(optimizer.param_groups[0]["lr"], optimizer.param_groups[0]["momentum"])]
    for _ in range(9):
        optimizer.step()
        scheduler.step()
        found.append((optimizer.param_groups[0]["lr"], optimizer.param_groups[0]["momentum"]))
    assert found[0] == pytest.approx((0.04, 0.95))
    assert max(found)[0] == 1.0 and max(found)[1] == pytest.approx(0.85)
    assert found[-1] == pytest.approx((4e-6, 0.95))
    with pytest.raises(ValueError, match="must support momentum or beta1"):
        lr_scheduler.OneCycleLR(optim.Adagrad([nn.Parameter(plimsoll.ones(1))]), 1.0, total_steps=10)


def test_the_order_of_calls_is_warned_of():
    optimizer = made()
    scheduler = lr_scheduler.StepLR(optimizer, 2)
    with pytest.warns(UserWarning, match="before `optimizer.step\\(\\)`"):
        scheduler.step()
    with pytest.warns(UserWarning, match="please use `get_last_lr\\(\\)`"):
        scheduler.get_lr()
    optimizer = made()
    scheduler = lr_scheduler.StepLR(optimizer, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        optimizer.step()
        scheduler.step()


def test_a_scheduler_goes_on_from_its_state():
    optimizer = made()
    scheduler = lr_scheduler.CosineAnnealingLR(optimizer, 10)
    rates(optimizer, scheduler, 4)
    other = made()
    again = lr_scheduler.CosineAnnealingLR(other, 10)
    again.load_state_dict(scheduler.state_dict())
    other.load_state_dict(optimizer.state_dict())
    assert rates(other, again, 3) == rates(optimizer, scheduler, 3)
    with pytest.raises(KeyError, match="initial_lr"):
        lr_scheduler.StepLR(made(), 2, last_epoch=3)


def test_a_rate_in_a_tensor_stays_that_tensor():
    rate = plimsoll.tensor(0.1, dtype=plimsoll.float64)
    optimizer = optim.SGD([nn.Parameter(plimsoll.ones(1))], lr=rate)
    scheduler = lr_scheduler.ExponentialLR(optimizer, 0.5)
    optimizer.step()
    scheduler.step()
    assert optimizer.param_groups[0]["lr"] is rate
    assert rate.item() == pytest.approx(0.05)


def test_averages_of_weights():
    model = nn.Linear(1, 1, bias=False)
    with plimsoll.no_grad():
        model.weight.fill_(1.0)
    mean, running = swa_utils.AveragedModel(model), swa_utils.AveragedModel(model, multi_avg_fn=swa_utils.get_ema_multi_avg_fn(0.5))
    one = swa_utils.AveragedModel(model, avg_fn=swa_utils.get_ema_avg_fn(0.5))
    for value in (1.0, 2.0, 6.0):
        with plimsoll.no_grad():
            model.weight.fill_(value)
        for average in (mean, running, one):
            average.update_parameters(model)
    assert mean.module.weight.item() == pytest.approx(3.0)
    assert running.module.weight.item() == pytest.approx(3.75)
    assert one.module.weight.item() == pytest.approx(3.75)
    assert mean.n_averaged.item() == 3
    assert list(mean.state_dict()) == ["n_averaged", "module.weight"]
    assert mean(plimsoll.ones(1, 1)).item() == pytest.approx(3.0)
    with pytest.raises(ValueError, match="Invalid decay value 2"):
        swa_utils.get_ema_avg_fn(2)


def test_batch_norms_learn_the_statistics_of_a_loader():
    model = nn.Sequential(nn.BatchNorm1d(1))
    model.eval()
    swa_utils.update_bn([plimsoll.tensor([[1.0], [3.0]]), [plimsoll.tensor([[5.0], [7.0]]), 0]], model)
    norm = model[0]
    assert norm.running_mean.item() == pytest.approx(4.0)
    assert norm.momentum == 0.1 and not model.training


def test_swalr_goes_to_its_rate():
    optimizer = made()
    scheduler = swa_utils.SWALR(optimizer, swa_lr=0.02, anneal_epochs=4, anneal_strategy="linear")
    assert rates(optimizer, scheduler, 6) == pytest.approx([0.08, 0.06, 0.04, 0.02, 0.02, 0.02])
