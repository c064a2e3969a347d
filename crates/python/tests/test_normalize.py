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
    for wrong in ({"found_inf": one.double()}, {"grad_scale": one.double()}, {"grad_scale": pl.ones(2)}):
        with pytest.raises((RuntimeError, TypeError)):
            pl._fused_adamw_([x], *states, [], [one], **NUMBERS, amsgrad=False, maximize=False, **wrong)
    with pytest.raises(RuntimeError):
        pl._fused_adamw_([x], *states, [], [one], **(NUMBERS | {"lr": pl.ones(2)}), amsgrad=False, maximize=False)
    with pytest.raises((RuntimeError, TypeError)):
        pl._fused_adamw_([x.half()], *states, [], [one], **NUMBERS, amsgrad=False, maximize=False)
    with pytest.raises(TypeError):
        pl._fused_adamw_([x], *states, [], [one], amsgrad=False, maximize=False)
    assert x.tolist() == [1.0] * 4


# One step of PyTorch's `_fused_adamw_` (lr 0.1, betas 0.9 and 0.99, weight decay 0.01, eps 1e-8) from parameters 1, -2, 3, gradients
# 0.5, -0.25, 2, means 0.1 and squares 0.2, at step 1: what becomes of them.
def one_step(dtype=pl.float32, lr=0.1, amsgrad=False, step_dtype=pl.float32, **options):
    make = lambda *values: pl.tensor(values).to(dtype)  # noqa: E731
    param, grad = make(1.0, -2.0, 3.0), make(0.5, -0.25, 2.0)
    mean, square, largest = (make(value, value, value) for value in (0.1, 0.2, 0.3))
    pl._fused_adamw_(
        [param], [grad], [mean], [square], [largest] if amsgrad else [], [pl.tensor(1.0).to(step_dtype)], lr=lr, beta1=0.9,
        beta2=0.99, weight_decay=0.01, eps=1e-8, amsgrad=amsgrad, maximize=amsgrad, **options,
    )  # fmt: skip
    return [tensor.tolist() for tensor in (param, grad, mean, square)]


FLOAT32 = [
    [0.9677340984344482, -2.012584686279297, 2.9375557899475098],
    [0.5, -0.25, 2.0],
    [0.14000000059604645, 0.0650000050663948, 0.28999999165534973],
    [0.2005000114440918, 0.19862499833106995, 0.23800000548362732],
]


def near(found, expected, rel):
    assert all(a == pytest.approx(b, rel=rel) for a, b in zip(found, expected, strict=True))


@pytest.mark.parametrize(
    "options, expected, rel",
    [
        ({}, FLOAT32, 2e-7),
        (
            {"dtype": pl.float64},
            [
                [0.9677341063559767, -2.0125846630670665, 2.9375557956492666],
                [0.5, -0.25, 2.0],
                [0.14, 0.065, 0.29],
                [0.2005, 0.198625, 0.238],
            ],
            1e-7,
        ),
        (
            {"dtype": pl.bfloat16},
            [
                [0.96875, -2.015625, 2.9375],
                [0.5, -0.25, 2.0],
                [0.1396484375, 0.06494140625, 0.291015625],
                [0.201171875, 0.19921875, 0.23828125],
            ],
            4e-3,
        ),
        (
            {"dtype": pl.float16},
            [
                [0.9677734375, -2.01171875, 2.9375],
                [0.5, -0.25, 2.0],
                [0.1400146484375, 0.06500244140625, 0.2900390625],
                [0.200439453125, 0.1986083984375, 0.2379150390625],
            ],
            5e-4,
        ),
        ({"lr": pl.tensor(0.1)}, FLOAT32, 2e-7),
        ({"lr": pl.tensor([0.1], dtype=pl.float64)}, FLOAT32, 2e-7),
        ({"lr": pl.tensor(0.1, requires_grad=True)}, FLOAT32, 2e-7),
        ({"step_dtype": pl.float64}, FLOAT32, 2e-7),
        ({"step_dtype": pl.int64}, FLOAT32, 2e-7),
        ({"found_inf": pl.tensor(0.0)}, FLOAT32, 2e-7),
        ({"found_inf": pl.tensor(0.5)}, FLOAT32, 2e-7),
        (
            {"grad_scale": pl.tensor([2.0])},
            [
                [0.9731963872909546, -2.0154099464416504, 2.9553396701812744],
                [0.25, -0.125, 1.0],
                [0.11500000208616257, 0.07750000059604645, 0.1899999976158142],
                [0.19862499833106995, 0.19815625250339508, 0.20800000429153442],
            ],
            2e-7,
        ),
        (
            {"dtype": pl.bfloat16, "grad_scale": pl.tensor(3.0)},
            [
                [0.9765625, -2.015625, 2.96875],
                [0.1669921875, -0.08349609375, 0.66796875],
                [0.10693359375, 0.08154296875, 0.1572265625],
                [0.1982421875, 0.1982421875, 0.203125],
            ],
            4e-3,
        ),
        (
            {"dtype": pl.float64, "amsgrad": True, "grad_scale": pl.tensor(2.0), "found_inf": pl.tensor(0.0)},
            [
                [0.987132677942388, -2.0167138540139264, 2.998825741855017],
                [0.25, -0.125, 1.0],
                [0.065, 0.1025, -0.01],
                [0.198625, 0.19815625, 0.208],
            ],
            1e-6,
        ),
    ],
)
def test_a_step_in_every_dtype_with_numbers_in_tensors(options, expected, rel):
    near(one_step(**options), expected, rel)


@pytest.mark.parametrize("options", [{}, {"grad_scale": pl.tensor(2.0)}])
def test_a_step_that_found_an_infinite_gradient_does_nothing(options):
    before = [[1.0, -2.0, 3.0], [0.5, -0.25, 2.0], [pytest.approx(0.1)] * 3, [pytest.approx(0.2)] * 3]
    assert one_step(found_inf=pl.tensor(1.0), **options) == before


def test_a_step_over_parameters_of_several_dtypes():
    dtypes = (pl.float32, pl.float64)
    params, grads, means, squares = ([make(2, dtype=dtype) for dtype in dtypes] for make in (pl.ones, pl.zeros, pl.zeros, pl.zeros))
    steps = [pl.ones([]) for _ in dtypes]
    numbers = NUMBERS | {"weight_decay": 0.1}
    pl._fused_adamw_(params, grads, means, squares, [], steps, **numbers, amsgrad=False, maximize=False)
    assert all(param.tolist() == pytest.approx([0.99, 0.99]) for param in params)
