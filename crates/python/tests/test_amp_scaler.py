"""`plimsoll.amp.GradScaler` beside PyTorch's: scales, counts and values of steps some of which are not finite, as
`crates/nn/tests/golden/make_optim_golden.py` wrote them down; and PyTorch's errors."""

import copy
import json
import math
import pathlib
import pickle

import pytest

import plimsoll as pm
from plimsoll import nn, optim
from plimsoll.amp import GradScaler

GOLDEN = pathlib.Path(__file__).parents[2] / "nn" / "tests" / "golden" / "scalers.json"
FACTORS = [1, 1, math.inf, 1, 1, 1, 1, math.nan, math.nan, 1, 1, 1, 1, 1]


def made_params():
    made = []
    for at, shape in enumerate([(3, 2), (4,)]):
        values = [math.sin(i + 1 + at) for i in range(math.prod(shape))]
        made.append(pm.tensor(values, dtype=pm.float64).reshape(shape).requires_grad_(True))
    return made


def objective(params):
    loss = 0
    for at, p in enumerate(params):
        i = pm.arange(p.numel(), dtype=pm.float64).reshape(p.shape)
        loss = loss + ((0.5 + 0.25 * (i + at).cos()) * (p - (2 * i + at).sin()) ** 2 + 0.3 * (3 * p).cos()).sum()
    return loss


def optimizer_of(expression, params, plain):
    kind, arguments = expression.split("(", 1)
    made = eval(f"optim.{kind}(params, {arguments}", {"optim": optim, "params": params})
    if plain:
        # As one whose step knows nothing of scales: the scaler asks the host then.
        made._step_supports_amp_scaling = False
    return made


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("case", json.loads(GOLDEN.read_text()), ids=lambda case: f"{case['optimizer']}-{case['clip']}")
def test_scales_and_skipped_steps_are_pytorchs(case, plain):
    params = made_params()
    optimizer = optimizer_of(case["optimizer"], params, plain)
    scaler = GradScaler("cpu", init_scale=1024.0, growth_interval=3)
    for at, factor in enumerate([math.inf] * case["first_is_bad"] + FACTORS):
        optimizer.zero_grad()
        scaler.scale(objective(params) * factor).backward()
        if case["clip"]:
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(params, 0.5)
        scaler.step(optimizer)
        scaler.update()
        assert (scaler.get_scale(), scaler._get_growth_tracker()) == (case["scales"][at], case["trackers"][at])
        found = [x for p in params for x in p.detach().flatten().tolist()]
        assert found == pytest.approx(case["values"][at], rel=1e-11)
    assert scaler.state_dict() == case["state"]


def trained(scale=16.0):
    weight = nn.Parameter(pm.ones(4))
    return weight, optim.SGD([weight], lr=0.5), GradScaler("cpu", init_scale=scale, growth_interval=2)


def test_one_optimizers_infinite_gradient_skips_its_step_alone():
    a, first, scaler = trained()
    b, second, _ = trained()
    scaler.scale(a.sum() + (b * math.inf).sum()).backward()
    for optimizer in (first, second):
        scaler.step(optimizer)
    scaler.update()
    assert (a.tolist(), b.tolist(), scaler.get_scale()) == ([0.5] * 4, [1.0] * 4, 8.0)
    assert not hasattr(first, "grad_scale") and not hasattr(first, "found_inf")


def test_gradients_on_two_devices_are_looked_at_together():
    own = pm.private_cpu()
    here, there = nn.Parameter(pm.ones(2)), nn.Parameter(pm.ones(2, device=own))
    optimizer = optim.SGD([here, there], lr=0.5)
    scaler = GradScaler("cpu", init_scale=16.0)
    for factor in (1.0, math.nan):
        optimizer.zero_grad()
        for loss in scaler.scale([here.sum(), (there * factor).sum()]):
            loss.backward()
        scaler.step(optimizer)
        scaler.update()
        assert (here.tolist(), there.tolist()) == ([0.5] * 2, [0.5] * 2)
    assert scaler.get_scale() == 8.0


def test_lists_and_tuples_are_scaled():
    _, _, scaler = trained()
    one, (two, three) = scaler.scale([pm.ones(1), (pm.ones(1), pm.ones(1))])
    assert one.item() == two.item() == three.item() == 16.0
    assert [x.item() for x in scaler.scale(x for x in [pm.ones(1)])] == [16.0]
    with pytest.raises(ValueError, match="outputs must be a Tensor or an iterable of Tensors"):
        scaler.scale(3)


def test_what_comes_out_of_order_is_refused():
    weight, optimizer, scaler = trained()
    for what in ("unscale_", "step"):
        with pytest.raises(AssertionError, match=f"Attempted {what} but _scale is None"):
            getattr(scaler, what)(optimizer)
    with pytest.raises(AssertionError, match="Attempted update but _scale is None"):
        scaler.update()
    scaler.scale(weight.sum())
    with pytest.raises(AssertionError, match="No inf checks were recorded for this optimizer"):
        scaler.step(optimizer)
    assert not hasattr(optimizer, "grad_scale") and not hasattr(optimizer, "found_inf")
    with pytest.raises(AssertionError, match="No inf checks were recorded prior to update"):
        scaler.update()
    weight, optimizer, scaler = trained()
    scaler.scale(weight.sum()).backward()
    scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="already been called on this optimizer since the last update"):
        scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="Closure use is not currently supported"):
        scaler.step(optimizer, closure=lambda: None)
    with pytest.raises(AssertionError, match="may only be pickled"):
        pickle.dumps(scaler)
    scaler.step(optimizer)
    with pytest.raises(RuntimeError, match=r"unscale_\(\) is being called after step"):
        scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match=r"step\(\) has already been called since the last update"):
        scaler.step(optimizer)
    scaler.update()
    with pytest.raises(AssertionError, match="growth factor must be > 1.0"):
        GradScaler("cpu", growth_factor=1.0)
    with pytest.raises(AssertionError, match="backoff factor must be < 1.0"):
        GradScaler("cpu", backoff_factor=1.0)
    half = nn.Parameter(pm.ones(2, dtype=pm.float16))
    half.grad = pm.ones(2, dtype=pm.float16)
    with pytest.raises(ValueError, match="Attempting to unscale FP16 gradients"):
        scaler.unscale_(optim.SGD([half]))


def test_a_scale_is_set_by_hand():
    weight, optimizer, scaler = trained()
    scaler.scale(weight.sum()).backward()
    scaler.step(optimizer)
    scaler.update(64.0)
    assert scaler.get_scale() == 64.0
    scaler.update(pm.tensor(32.0))
    assert scaler.get_scale() == 32.0
    with pytest.raises(AssertionError, match="new_scale should be a float"):
        scaler.update(pm.ones(2))
    scaler.set_growth_factor(4.0)
    scaler.set_backoff_factor(0.25)
    scaler.set_growth_interval(7)
    assert (scaler.get_growth_factor(), scaler.get_backoff_factor(), scaler.get_growth_interval()) == (4.0, 0.25, 7)


def test_states_are_gone_on_with():
    weight, optimizer, scaler = trained()
    scaler.scale(weight.sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    state = scaler.state_dict()
    assert state == {
        "scale": 16.0,
        "growth_factor": 2.0,
        "backoff_factor": 0.5,
        "growth_interval": 2,
        "_growth_tracker": 1,
    }
    loaded = GradScaler("cpu")
    loaded.load_state_dict(state)
    for again in (loaded, pickle.loads(pickle.dumps(scaler)), copy.deepcopy(scaler)):
        optimizer.zero_grad()
        again.scale(weight.sum()).backward()
        again.step(optimizer)
        again.update()
        # Two in a row.
        assert again.state_dict() == {**state, "scale": 32.0, "_growth_tracker": 0}
    with pytest.raises(RuntimeError, match="source state dict is empty"):
        loaded.load_state_dict({})


def test_a_scaler_that_is_off_passes_through():
    weight, optimizer, _ = trained()
    scaler = GradScaler("cpu", enabled=False)
    loss = weight.sum()
    assert scaler.scale(loss) is loss and not scaler.is_enabled()
    loss.backward()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    assert (weight.tolist(), scaler.get_scale(), scaler.state_dict()) == ([0.5] * 4, 1.0, {})


def test_without_cuda_it_is_off():
    try:
        pm.empty(0, device="cuda")
    except RuntimeError:
        with pytest.warns(UserWarning, match="CUDA is not available"):
            assert not GradScaler().is_enabled()
    else:
        assert GradScaler().is_enabled()


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("make", [pm.optim.SGD, pm.optim.AdamW])
def test_a_step_without_gradients_counts_as_in_pytorch(make, fused):
    weight = pm.ones(2, requires_grad=True)
    optimizer, scaler = make([weight], lr=0.1, fused=fused), GradScaler("cpu")
    scaler.scale(weight.sum())
    if fused:
        scaler.step(optimizer)
    else:
        with pytest.raises(AssertionError, match="No inf checks were recorded for this optimizer"):
            scaler.step(optimizer)
    words = "is being called after step" if fused else "has already been called on this optimizer"
    with pytest.raises(RuntimeError, match=words):
        scaler.unscale_(optimizer)
    assert weight.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("is_fused", [None, False])
def test_a_step_refuses_gradients_of_half_precision(is_fused):
    scaler = GradScaler("cpu", init_scale=4.0)
    half = nn.Parameter(pm.ones(2, dtype=pm.float16))
    optimizer = optim.SGD([half], lr=0.1, fused=is_fused)
    scaler.scale(half.sum()).backward()
    # After an `unscale_` that was refused, too.
    for call in (scaler.step, scaler.unscale_, scaler.step):
        with pytest.raises(ValueError, match="Attempting to unscale FP16 gradients."):
            call(optimizer)
    assert half.tolist() == [1.0, 1.0] and half.grad.tolist() == [4.0, 4.0]


@pytest.mark.parametrize("name", ["fused", "master_weights"])
def test_a_step_that_divides_itself_takes_half_precision(name):
    scaler = GradScaler("cpu", init_scale=4.0)
    half = nn.Parameter(pm.ones(2, dtype=pm.float16))
    scaler.scale(half.sum()).backward()
    scaler.step(optim.SGD([half], lr=0.5, **{name: True}))
    assert half.tolist() == [0.5, 0.5]


def test_a_scaler_steps_parameters_that_were_cast():
    scaler = GradScaler("cpu", init_scale=4.0)
    wide, cast = (nn.Parameter(pm.tensor([1 + 2.0**-12, -3.0])) for _ in range(2))
    plain = optim.AdamW([wide], lr=2.0**-13)
    optimizer = optim.AdamW([cast], lr=2.0**-13, master_weights=True)
    optimizer.cast_parameters(pm.float16)
    for factor in (1.0, float("inf"), 0.5):
        optimizer.zero_grad()
        scaler.scale((cast * factor).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        if factor < 2:
            wide.grad = pm.full((2,), factor)
            plain.step()
        assert optimizer.state[cast]["master_param"].tolist() == wide.tolist()
        assert cast.tolist() == wide.half().tolist()
