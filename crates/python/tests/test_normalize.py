"""Batch norm and the fused step of AdamW: PyTorch's arguments and values (2.15)."""

import plimsoll as pl
import pytest


def test_training_writes_running_statistics():
    x = pl.tensor([[1.0, 10.0], [3.0, 30.0]], requires_grad=True)
    mean, var = pl.zeros(2), pl.ones(2)
    y = pl.batch_norm(x, mean, var, training=True, momentum=0.5)
    assert y.sum().item() == pytest.approx(0.0, abs=1e-5)
    assert (mean.tolist(), var.tolist()) == ([1.0, 10.0], [1.5, 100.5])
    y[0].sum().backward()
    assert x.grad.tolist()[0] == pytest.approx([0.0, 0.0], abs=1e-4)
    # In evaluation they are read: by place, by keyword, as a method.
    for y in [
        pl.batch_norm(x, mean, var, None, None, False, 0.1, 0.0),
        x.batch_norm(mean, var, eps=0.0),
        pl.batch_norm(x, running_mean=mean, running_var=var, weight=pl.ones(2), bias=pl.zeros(2), eps=0.0),
    ]:
        assert y.tolist()[0] == pytest.approx([0.0, 0.0])
        assert y.tolist()[1] == pytest.approx([2 / 1.5**0.5, 20 / 100.5**0.5])
    assert pl.batch_norm(x, None, None, training=True).tolist()[1] == pytest.approx([1.0, 1.0], abs=1e-5)


def test_batch_norm_refuses_what_pytorch_refuses():
    x = pl.ones(1, 3)
    with pytest.raises(ValueError, match="Expected more than 1 value per channel when training"):
        pl.batch_norm(x, None, None, training=True)
    with pytest.raises(ValueError, match="running_mean must be defined in evaluation mode"):
        pl.batch_norm(x, None, None)
    with pytest.raises(RuntimeError, match="running_var should have shape"):
        pl.batch_norm(x, pl.zeros(3), pl.ones(4))
    with pytest.raises(TypeError):
        pl.batch_norm(x, pl.zeros(3), pl.ones(3), momentum=None)


# Four steps of torch.optim.AdamW(fused=True, lr=0.1, betas=(0.8, 0.5), eps=1e-6, weight_decay=0.05): AMSGrad, upward, and what
# becomes of the parameters.
FOUR_STEPS = [
    (False, False, [0.5942603945732117, -1.5744115114212036, 0.10418513417243958, 2.554558515548706]),
    (False, True, [1.3660385608673096, -2.346186637878418, 0.875964343547821, 3.326338768005371]),
    (True, False, [0.7214105129241943, -1.7015608549118042, 0.23133553564548492, 2.6817092895507812]),
    (True, True, [1.2388885021209717, -2.2190375328063965, 0.7488138675689697, 3.199187994003296]),
]
NUMBERS = {"lr": 0.1, "beta1": 0.8, "beta2": 0.5, "weight_decay": 0.05, "eps": 1e-6}


@pytest.mark.parametrize("amsgrad, maximize, expected", FOUR_STEPS)
def test_four_steps_are_pytorchs(amsgrad, maximize, expected):
    param = pl.tensor([1.0, -2.0, 0.5, 3.0], requires_grad=True)
    mean, square, largest = (pl.zeros(4) for _ in range(3))
    step = pl.zeros([])
    for number in range(1, 5):
        step.add_(1)
        grad = pl.tensor([0.5, -0.25, 0.75, 1.0]).mul(1 / number**2)
        kept = [largest] if amsgrad else []
        answer = pl._fused_adamw_(
            [param], [grad], [mean], [square], kept, [step], **NUMBERS, amsgrad=amsgrad, maximize=maximize
        )
        assert answer is None
    assert param.tolist() == pytest.approx(expected, rel=2e-6)
    assert param.is_leaf and param.requires_grad


def test_a_step_that_does_not_fit_is_refused():
    x = pl.ones(4)
    states = [[pl.zeros(4)], [pl.zeros(4)], [pl.zeros(4)]]
    one = pl.ones([])
    with pytest.raises(ValueError, match="amsgrad needs max_exp_avg_sqs"):
        pl._fused_adamw_([x], *states, [], [one], **NUMBERS, amsgrad=True, maximize=False)
    with pytest.raises(ValueError, match="state_steps"):
        pl._fused_adamw_([x], *states, [], [], **NUMBERS, amsgrad=False, maximize=False)
    with pytest.raises(RuntimeError, match="not taken yet"):
        pl._fused_adamw_([x], *states, [], [one], **NUMBERS, amsgrad=False, maximize=False, found_inf=one)
    with pytest.raises(TypeError):
        pl._fused_adamw_([x], *states, [], [one], amsgrad=False, maximize=False)
    assert x.tolist() == [1.0] * 4
