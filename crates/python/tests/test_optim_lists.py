"""Steps over lists of tensors, whose state is the caller's: the values are PyTorch's, those of the classes' own tests."""

import plimsoll
import pytest
from plimsoll import optim
from plimsoll.optim import _functional
from test_optim_steps import GRADS, SEVEN_STEPS

# The lists of each function in their order, by the name of what a class keeps.
LISTS = {
    "SGD": ["momentum_buffer"],
    "Adam": ["exp_avg", "exp_avg_sq", "max_exp_avg_sq", "step"],
    "AdamW": ["exp_avg", "exp_avg_sq", "max_exp_avg_sq", "step"],
    "NAdam": ["exp_avg", "exp_avg_sq", "mu_product", "step"],
    "RAdam": ["exp_avg", "exp_avg_sq", "step"],
    "Adagrad": ["sum", "step"],
    "Adadelta": ["square_avg", "acc_delta", "step"],
    "RMSprop": ["square_avg", "grad_avg", "momentum_buffer", "step"],
    "Rprop": ["prev", "step_size", "step"],
    "Adamax": ["exp_avg", "exp_inf", "step"],
}
# Options of a class that are two of the function.
PAIRS = {
    "betas": ("beta1", "beta2"),
    "etas": ("etaminus", "etaplus"),
    "step_sizes": ("step_size_min", "step_size_max"),
}
ONLY_OF_CLASSES = {"foreach", "capturable", "differentiable", "fused", "initial_accumulator_value"}


def in_words_of_the_function(name, group):
    options = {}
    for key, value in group.items():
        if key in PAIRS:
            options.update(zip(PAIRS[key], value))
        elif key != "params" and key not in ONLY_OF_CLASSES:
            options[key] = value
    if name == "Rprop":
        del options["lr"]
    if name == "AdamW":
        del options["decoupled_weight_decay"]
    return options


def first_state(name, group, param, key):
    """What a class keeps before the first step."""
    if name == "SGD":
        return None
    if key in ("step", "mu_product"):
        return plimsoll.tensor(1.0 if key == "mu_product" else 0.0)
    first = {"sum": group.get("initial_accumulator_value", 0.0), "step_size": group["lr"]}
    return plimsoll.full_like(param, first.get(key, 0.0))


def begun(name, group, params):
    return [[first_state(name, group, param, key) for param in params] for key in LISTS[name]]


@pytest.mark.parametrize(("name", "options", "expected"), SEVEN_STEPS)
def test_seven_steps_are_pytorchs(name, options, expected):
    param = plimsoll.tensor([1.0, -2.0, 0.5], dtype=plimsoll.float64)
    group = getattr(optim, name)([plimsoll.nn.Parameter(param.clone())], **options).param_groups[0]
    lists, words = begun(name, group, [param]), in_words_of_the_function(name, group)
    for at, g in enumerate(GRADS):
        grad = plimsoll.tensor([g, -g * 0.5, 0.25 * (at + 1)], dtype=plimsoll.float64)
        getattr(_functional, name.lower())([param], [grad], *lists, **words)
    assert param.tolist() == pytest.approx(expected, rel=1e-12)
    if "step" in LISTS[name]:
        assert lists[-1][0].item() == len(GRADS)


def adam_of(count, **options):
    params = [plimsoll.ones(1 << 16) for _ in range(count)]
    lists = [[plimsoll.zeros(1 << 16) for _ in params] for _ in range(2)]
    return params, [*lists, [], [plimsoll.tensor(0.0) for _ in params]], {
        **{"amsgrad": False, "beta1": 0.9, "beta2": 0.99, "lr": 0.1, "weight_decay": 0.0, "eps": 1e-8},
        **{"maximize": False, **options},
    }


def test_a_step_takes_no_memory_and_changes_what_it_was_given():
    params, lists, options = adam_of(3)
    grads = [plimsoll.full_like(param, 0.5) for param in params]
    kept = [*params, *lists[0], *lists[1]]
    places = [tensor.data_ptr() for tensor in kept]
    before = plimsoll.memory_allocated()
    plimsoll.reset_peak_memory_stats()
    optim.adam.adam(params, grads, *lists, **options)
    assert plimsoll.memory_allocated() == before
    assert plimsoll.max_memory_allocated() - before < 1 << 16, "no temporary as large as a parameter"
    assert [tensor.data_ptr() for tensor in kept] == places
    assert all(param[0].item() == pytest.approx(0.9) for param in params)
    assert lists[0][0][0].item() == pytest.approx(0.05) and lists[3][2].item() == 1


def test_a_first_buffer_is_put_into_the_list():
    param, grad, buffers = plimsoll.ones(2), plimsoll.full((2,), 0.5), [None]
    options = {"weight_decay": 0.0, "lr": 0.1, "dampening": 0.0, "nesterov": False, "maximize": False}
    optim.sgd.sgd([param], [grad], buffers, momentum=0.9, **options)
    assert buffers[0].tolist() == [0.5, 0.5] and param.tolist() == pytest.approx([0.95, 0.95])
    first = buffers[0]
    optim.sgd.sgd([param], [grad], buffers, momentum=0.9, **options)
    assert buffers[0] is first and first.tolist() == pytest.approx([0.95, 0.95])
    plain = [None]
    optim.sgd.sgd([param], [grad], plain, momentum=0.0, **options)
    assert plain == [None]


def test_a_scaler_skips_a_fused_step():
    params, lists, options = adam_of(1, fused=True)
    scale, found = plimsoll.tensor(4.0), plimsoll.tensor(1.0)
    optim.adam.adam(params, [plimsoll.ones(1 << 16)], *lists, grad_scale=scale, found_inf=found, **options)
    assert params[0][0].item() == 1.0
    optim.adam.adam(params, [plimsoll.ones(1 << 16)], *lists, grad_scale=scale, found_inf=plimsoll.tensor(0.0), **options)
    assert lists[0][0][0].item() == pytest.approx(0.025)
    with pytest.raises(AssertionError, match="grad_scale and found_inf to be None"):
        optim.adam.adam(params, params, *lists, grad_scale=scale, **{**options, "fused": False})


def test_what_is_not_taken_says_why():
    params, lists, options = adam_of(2)
    grads = [param.clone() for param in params]
    with pytest.raises(RuntimeError, match=r"optim.Adam\(..., differentiable=True\)"):
        optim.adam.adam(params, grads, *lists, differentiable=True, **options)
    with pytest.raises(RuntimeError, match="`state_steps` argument must contain a list of singleton tensors"):
        optim.adam.adam(params, grads, *lists[:3], [1, 1], **options)
    with pytest.raises(ValueError, match="2 parameters, and 1 of grads"):
        optim.adam.adam(params, grads[:1], *lists, **options)
    with pytest.raises(ValueError, match="2 parameters, and 0 of step"):
        optim.adam.adam(params, grads, *lists[:3], [], **options)
    plain = {"weight_decay": 0.0, "lr": 0.1, "dampening": 0.0, "nesterov": False, "maximize": False}
    with pytest.raises(ValueError, match="2 parameters, and 0 of momentum_buffer"):
        optim.sgd.sgd(params, grads, [], momentum=0.9, **plain)
    optim.sgd.sgd(params, grads, [], momentum=0.0, **plain)
    leaf = plimsoll.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        optim.sgd.sgd([leaf], [plimsoll.ones(2)], [None], momentum=0.0, **plain)
    with plimsoll.no_grad():
        optim.sgd.sgd([leaf], [plimsoll.ones(2)], [None], momentum=0.0, **plain)
    assert leaf.tolist() == pytest.approx([0.9, 0.9])
    with pytest.raises(AssertionError, match="capturable=True"):
        optim.adam.adam(params, grads, *lists, capturable=True, **options)
    with pytest.raises(RuntimeError, match="Foreach is not supported"):
        optim._muon.muon(
            *([], [], []), foreach=True, lr=0.1, weight_decay=0.0, momentum=0.9, nesterov=True,
            ns_coefficients=(1.0, 1.0, 1.0), ns_steps=1, eps=1e-7, adjust_lr_fn=None, has_complex=False,
        )  # fmt: skip
