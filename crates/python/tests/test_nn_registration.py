"""Hooks that see what modules are given, global hooks, and the older backward hooks: as PyTorch 2.15 calls them."""

import gc
import pickle
import weakref

import plimsoll
import pytest
from plimsoll import nn
from plimsoll.nn.modules import module as modules


@pytest.fixture
def seen():
    """What was registered, while the hooks are there."""
    log = []

    def note(kind):
        def hook(owner, name, value):
            log.append((kind, type(owner).__name__, name, None if value is None else type(value).__name__))

        return hook

    handles = [
        modules.register_module_parameter_registration_hook(note("parameter")),
        modules.register_module_buffer_registration_hook(note("buffer")),
        modules.register_module_module_registration_hook(note("module")),
    ]
    yield log
    for handle in handles:
        handle.remove()


def test_every_way_of_registering_calls_the_hooks(seen):
    model = nn.Sequential(nn.Linear(1, 1))
    assert seen == [
        ("parameter", "Linear", "weight", "Parameter"),
        ("parameter", "Linear", "bias", "Parameter"),
        ("module", "Sequential", "0", "Linear"),
    ]
    seen.clear()
    model.extra = nn.ReLU()
    model.extra = None
    model.register_buffer("table", plimsoll.ones(2))
    model.table = plimsoll.zeros(3)
    model.table = None
    assert seen == [
        ("module", "Sequential", "extra", "ReLU"),
        ("module", "Sequential", "extra", None),
        ("buffer", "Sequential", "table", "Tensor"),
        ("buffer", "Sequential", "table", "Tensor"),
        ("buffer", "Sequential", "table", None),
    ]
    seen.clear()
    model[0].bias = None  # no parameter is registered then
    assert seen == []


def test_what_a_hook_returns_takes_the_place():
    other = nn.Parameter(plimsoll.full((1, 1), 7.0))
    with modules.register_module_parameter_registration_hook(lambda owner, name, value: other if name == "weight" else None):
        layer = nn.Linear(1, 1)
    assert layer.weight is other and layer.bias is not other
    assert nn.Linear(1, 1).weight is not other


def test_a_buffer_stays_out_of_the_state_when_it_is_set_again():
    layer = nn.Module()
    layer.register_buffer("hidden", plimsoll.ones(1), persistent=False)
    with modules.register_module_buffer_registration_hook(lambda *given: None):
        layer.hidden = plimsoll.zeros(2)
    assert list(layer.state_dict()) == [] and layer.hidden.shape == (2,)


def test_a_name_has_one_kind():
    layer = nn.Linear(1, 1)
    with pytest.raises(TypeError, match="as parameter 'weight'"):
        layer.weight = nn.ReLU()
    layer.plain = 3
    with pytest.raises(KeyError, match="attribute 'plain' already exists"):
        layer.plain = nn.Buffer(plimsoll.ones(1))


def test_an_older_backward_hook_sees_the_last_operation():
    class Doubled(nn.Module):
        def forward(self, x):
            return (x.exp() * 2.0).sin()

    found, model, x = [], Doubled(), plimsoll.ones(2, requires_grad=True)
    model.register_backward_hook(lambda module, inputs, outputs: found.append((inputs[0].tolist(), outputs[0].tolist())))
    with pytest.warns(FutureWarning, match="several operations"):
        model(x).backward(plimsoll.tensor([1.0, 10.0]))
    cos = float(plimsoll.tensor(2.0 * 2.718281828459045).cos())
    ((inputs, outputs),) = found
    assert outputs == [1.0, 10.0] and inputs == pytest.approx([cos, 10 * cos], rel=1e-5)
    with pytest.raises(RuntimeError, match="Please use only one of them"):
        model.register_full_backward_hook(print)


def test_a_module_under_a_full_backward_hook_writes_nothing_in_place():
    model = nn.ReLU(inplace=True)
    model.register_full_backward_hook(lambda *given: None)
    with pytest.raises(RuntimeError, match="is a view and is being modified inplace"):
        model(plimsoll.ones(2, requires_grad=True) * 1)


def test_gradients_that_do_not_come_through_the_result_call_no_hook():
    class InDictionary(nn.Module):
        def forward(self, x):
            return {"twice": x * 2}

    called, model, x = [], InDictionary(), plimsoll.ones(1, requires_grad=True)
    model.register_full_backward_hook(lambda *given: called.append(1))
    with pytest.warns(UserWarning, match="module output should be a Tensor"):
        model(x)["twice"].backward()
    assert x.grad.item() == 2 and called == []


def test_a_hook_that_is_always_called_sees_how_far_the_call_came():
    def fails(module, args, result):
        raise ValueError("no")

    seen, model = [], nn.Linear(1, 1)
    model.register_forward_pre_hook(lambda module, args: (args[0] * 3,))
    model.register_forward_hook(fails)
    model.register_forward_hook(lambda module, args, result: seen.append((args[0].item(), type(result))), always_call=True)
    with pytest.raises(ValueError, match="no"):
        model(plimsoll.ones(1, 1))
    assert seen == [(3.0, plimsoll.Tensor)]


def test_global_forward_hooks_with_keywords():
    class Plus(nn.Module):
        def forward(self, x, more=0):
            return x + more

    seen = []
    with modules.register_module_forward_hook(lambda module, args, kwargs, result: seen.append(kwargs), with_kwargs=True):
        Plus()(plimsoll.ones(1), more=2)
    Plus()(plimsoll.ones(1), more=3)
    assert seen == [{"more": 2}]


def note_module(module, state, *rest):
    module.noted = len(state)


def test_a_loading_hook_does_not_keep_its_module():
    layer = nn.Linear(1, 1)
    layer.register_load_state_dict_pre_hook(note_module)
    copied = pickle.loads(pickle.dumps(layer))
    copied.load_state_dict(layer.state_dict())
    assert copied.noted == 2 and not hasattr(layer, "noted")
    gone = weakref.ref(layer)
    gc.disable()
    try:
        del layer
        assert gone() is None
    finally:
        gc.enable()
