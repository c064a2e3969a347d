"""Steps that gradients flow through: `differentiable=True`. Expected values are PyTorch's (2.15, float64 by default)."""

import plimsoll
import pytest
from plimsoll import nn, optim

# How many steps (PyTorch can differentiate one of some rules and no more), where they end, and the gradient of
# `p . (1, 2, 3)` with respect to the start, [1, -2, 0.5].
STEPS = [
    ("SGD", dict(lr=0.1), 4, [0.38592209667933897, -0.9573190505099938, 0.26220170630146433], [1.6298326182922025, -0.13142574768892967, 1.9565563252385298]),
    ("SGD", dict(lr=0.1, momentum=0.9, dampening=0.3, weight_decay=0.2), 4, [-0.22813791180861476, 0.21534832549504898, 0.08425857356475706], [1.274746316005238, -0.6882751841549466, 1.1984381348956257]),
    ("SGD", dict(lr=0.1, momentum=0.9, nesterov=True, maximize=True), 4, [5.069672567521611, -10.75564876637614, -5.126242241126665], [-20.402920007864175, 18.738958793153472, 27.902809655164752]),
    ("Adam", dict(lr=0.1), 4, [0.6026416271921311, -1.6021730955326554, 0.3992442584814425], [4.348255284576668, 0.33946994430773025, 0.4556145379185985]),
    ("Adam", dict(lr=0.1, betas=(0.5, 0.6), eps=0.001, weight_decay=0.3, amsgrad=True), 1, [0.9000543093872643, -1.9000221378679105, 0.40349863669966135], [1.7343796050685563, 1.6327400331826138, 2.3315091902668597]),
    ("AdamW", dict(lr=0.1, weight_decay=0.3), 4, [0.5048148696857736, -1.3922439895631047, 0.32747927836595814], [3.248528825656156, 0.5918291993516169, 0.8431155838168316]),
    ("NAdam", dict(lr=0.1, weight_decay=0.3, decoupled_weight_decay=True), 4, [0.5733094938825698, -1.4743693411594998, 0.26979254056406304], [1.469533649097809, 1.4689061264656145, 2.1115065647286673]),
    ("NAdam", dict(lr=0.1, momentum_decay=0.1, weight_decay=0.1), 4, [0.6754915586667289, -1.680223436364069, 0.33294367769270333], [1.4932849939029504, 1.7460244044369797, 2.504314297217655]),
    ("RAdam", dict(lr=0.1, betas=(0.8, 0.9), weight_decay=0.1), 4, [0.3517377191705717, -0.7284232576433559, 0.3307194508332961], [1.8477219620502399, -0.7013482971707823, 1.6304710211464402]),
    ("RAdam", dict(lr=0.1, betas=(0.3, 0.5), maximize=True), 4, [1.6754673385678527, -4.132592287642783, -0.050311565890584886], [-2.2263304328282008, 7.134183729824784, 6.772488865649041]),
    ("Adagrad", dict(lr=0.1, lr_decay=0.2, initial_accumulator_value=0.1), 4, [0.7745008788542486, -1.7745194305623526, 0.4129640732855639], [3.5171036764131447, 0.7591050986926131, 1.0170184762999475]),
    ("Adadelta", dict(lr=2.0, rho=0.8, weight_decay=0.1), 4, [0.9810147244915095, -1.9809658769378475, 0.5124501185910384], [1.729624092809741, 1.637962512724447, 2.408323286073029]),
    ("RMSprop", dict(lr=0.1, momentum=0.5, centered=True, eps=0.1), 1, [0.39180542062771856, -1.200217846043854, 0.6091255321926996], [5.545458876076705, -0.704536919793687, -0.3964901874896256]),
    ("RMSprop", dict(lr=0.1, alpha=0.7, weight_decay=0.1), 4, [0.4561262001629325, -1.4678554096616525, 0.2315905864420948], [0.9880934398453294, 1.9506897029395978, 2.8505214384670596]),
    ("Rprop", dict(lr=0.1, etas=(0.4, 1.3), step_sizes=(0.05, 0.15)), 1, [0.9, -1.9, 0.6], [1.0, 2.0, 3.0]),
    ("Adamax", dict(lr=0.1, weight_decay=0.2), 1, [0.9000000005746128, -1.9000000002316881, 0.5999999553918896], [1.0000119387988402, 1.9999940298505605, 2.99998972932474]),
]


def inner(p):
    return (p**2).sum() + p[0] * p[1] * p[2] + p.sin().sum()


def go(optimizer, p, count):
    for _ in range(count):
        # A copy, for a step writes to the parameter.
        now = p.clone()
        p.grad = plimsoll.autograd.grad(inner(now), now, create_graph=True)[0]
        optimizer.step()
    return (p * plimsoll.tensor([1.0, 2.0, 3.0], dtype=plimsoll.float64)).sum()


def start():
    return plimsoll.tensor([1.0, -2.0, 0.5], dtype=plimsoll.float64, requires_grad=True)


@pytest.mark.parametrize(("name", "options", "count", "end", "gradient"), STEPS)
def test_gradients_of_steps_are_pytorchs(name, options, count, end, gradient):
    first = start()
    p = first.clone()
    go(getattr(optim, name)([p], differentiable=True, **options), p, count).backward()
    # Steps and products are counted in float32.
    assert p.tolist() == pytest.approx(end, rel=1e-6)
    assert first.grad.tolist() == pytest.approx(gradient, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize(("name", "options", "count", "end", "gradient"), STEPS)
def test_recorded_steps_are_the_fused_ones(name, options, count, end, gradient):
    ends = []
    for differentiable in (True, False):
        p = start().clone().detach() if differentiable else nn.Parameter(start().detach())
        optimizer = getattr(optim, name)([p], differentiable=differentiable, **options)
        for at in range(7):
            p.grad = plimsoll.tensor([0.5 - at, 0.25 * at, 1.0], dtype=plimsoll.float64)
            optimizer.step()
        kept = optimizer.state[p]
        ends.append([p.tolist(), {key: value.tolist() for key, value in kept.items()}])
    assert ends[0][0] == pytest.approx(ends[1][0], rel=1e-6)
    assert ends[0][1].keys() == ends[1][1].keys()
    for key, value in ends[0][1].items():
        assert value == pytest.approx(ends[1][1][key], rel=1e-6), key


def test_lions_gradient_is_that_of_its_weight_decay():
    # By hand: a step by a sign has no slope, so the start counts by the decay alone.
    first = start()
    p = first.clone()
    go(optim.Lion([p], lr=0.1, weight_decay=0.5, differentiable=True), p, 2).backward()
    assert first.grad.tolist() == pytest.approx([0.95**2, 2 * 0.95**2, 3 * 0.95**2])


@pytest.mark.parametrize(("name", "expected"), [("SGD", -5.377071581498559), ("Adam", -1.071222895806602)])
def test_the_learning_rate_has_a_gradient(name, expected):
    rate = plimsoll.tensor(0.1, dtype=plimsoll.float64, requires_grad=True)
    p = start().clone()
    go(getattr(optim, name)([p], lr=rate, differentiable=True), p, 4).backward()
    assert rate.grad.item() == pytest.approx(expected, rel=1e-6)


def test_what_cannot_be_recorded_is_refused():
    p = nn.Parameter(plimsoll.ones(2))
    p.grad = plimsoll.ones(2)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"):
        optim.SGD([p], differentiable=True).step()
    with pytest.raises(AssertionError, match="_foreach ops don't support autograd"):
        optim.Adam([p], differentiable=True, foreach=True).step()
    with pytest.raises(RuntimeError, match="`fused` does not support `differentiable`"):
        optim.Adam([p], differentiable=True, fused=True)
    with pytest.raises(ValueError, match="does not support `master_weights`"):
        optim.Adam([p], differentiable=True, master_weights=True)


def test_what_is_kept_stays_an_optimizers_and_graphs_are_let_go():
    device = plimsoll.private_cpu()
    first = plimsoll.ones(256, device=device).requires_grad_()
    p = first.clone()
    optimizer = optim.Adam([p], differentiable=True)
    p.grad = plimsoll.ones(256, device=device) * first
    optimizer.step()
    kept = optimizer.state[p]
    assert kept["exp_avg"].requires_grad and kept["step"].item() == 1
    assert plimsoll.memory_by_kind(device)["optimizer state"] >= 2 * 256 * 4
    del p, kept, optimizer
    assert plimsoll.memory_allocated(device) == 256 * 4


CAPTURABLE = ["Adam", "AdamW", "NAdam", "RAdam", "Adamax", "Adadelta", "RMSprop", "Rprop", "ASGD"]


@pytest.mark.parametrize("name", CAPTURABLE)
def test_foreach_is_taken(name):
    for choice in (True, False):
        p = nn.Parameter(plimsoll.ones(3))
        optimizer = getattr(optim, name)([p], foreach=choice)
        p.grad = plimsoll.ones(3)
        optimizer.step()
        assert optimizer.param_groups[0]["foreach"] is choice and (p < 1).all()


@pytest.mark.parametrize("name", CAPTURABLE)
def test_a_capturable_step_is_taken_on_an_accelerator_and_refused_on_a_cpu(name):
    for option in ({}, {"foreach": True}, {"differentiable": True}):
        p = nn.Parameter(plimsoll.ones(3))
        optimizer = getattr(optim, name)([p], capturable=True, **option)
        optimizer.step()  # nothing has a gradient
        p.grad = plimsoll.ones(3)
        with pytest.raises(AssertionError, match="If capturable=True, params.* must be on supported devices"):
            optimizer.step()
        assert (p == 1).all() and optimizer.param_groups[0]["capturable"] is True
    p = nn.Parameter(plimsoll.ones(3, device=plimsoll.stand_in()))
    optimizer = getattr(optim, name)([p], capturable=True)
    p.grad = plimsoll.ones_like(p)
    optimizer.step()
    assert (p < 1).all()


def test_nadams_product_is_part_of_the_graph():
    product = plimsoll.tensor(0.5, dtype=plimsoll.float64, requires_grad=True)

    def stepped(product):
        param = plimsoll.ones(2, dtype=plimsoll.float64, requires_grad=True).clone()
        param.grad = plimsoll.full((2,), 0.5, dtype=plimsoll.float64)
        optimizer = plimsoll.optim.NAdam([param], lr=0.1, differentiable=True)
        halves = {name: plimsoll.full((2,), 0.5, dtype=plimsoll.float64) for name in ("exp_avg", "exp_avg_sq")}
        optimizer.state[param].update(halves, step=plimsoll.tensor(3.0), mu_product=product)
        optimizer.step()
        return param

    assert plimsoll.autograd.gradcheck(stepped, [product])
    (slope,) = plimsoll.autograd.grad(stepped(product).sum(), product)
    assert slope.item() != 0
