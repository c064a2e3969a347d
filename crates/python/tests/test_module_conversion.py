"""What stays the same object when a module is converted or loaded, by default and as `__future__` says; handles of hooks."""

import collections
import gc
import pickle
import weakref

import plimsoll as pm
import pytest
from plimsoll import nn
from plimsoll.utils.hooks import RemovableHandle


@pytest.fixture
def settings():
    yield pm.__future__
    pm.__future__.set_swap_module_params_on_conversion(False)
    pm.__future__.set_overwrite_module_params_on_conversion(False)


def trained():
    layer = nn.Linear(2, 1)
    layer(pm.ones(1, 2)).sum().backward()
    return layer, layer.weight, layer.weight.grad


def test_parameters_and_gradients_stay(settings):
    layer, weight, gradient = trained()
    assert not settings.get_swap_module_params_on_conversion() and not settings.get_overwrite_module_params_on_conversion()
    layer.double()
    assert layer.weight is weight and weight.grad is gradient
    assert (weight.dtype, gradient.dtype, gradient.tolist()) == (pm.float64, pm.float64, [[1.0, 1.0]])


def test_swapped(settings):
    settings.set_swap_module_params_on_conversion(True)
    layer, weight, gradient = trained()
    address = weight.data_ptr()
    layer.double()
    assert layer.weight is weight and weight.grad is gradient and weight.data_ptr() != address
    assert (weight.dtype, gradient.dtype, weight.requires_grad, weight.is_leaf) == (pm.float64, pm.float64, True, True)
    kept = {name: value.float() * 0 + 3 for name, value in layer.state_dict().items()}
    layer.load_state_dict(kept)
    assert layer.weight is weight and (weight.dtype, weight.tolist()) == (pm.float64, [[3.0, 3.0]])
    layer.load_state_dict(kept, assign=True)
    assert layer.weight is weight and weight.dtype == pm.float32 and weight.data_ptr() == kept["weight"].data_ptr()


def test_new_ones(settings):
    settings.set_overwrite_module_params_on_conversion(True)
    layer, weight, gradient = trained()
    layer.double()
    assert layer.weight is not weight and isinstance(layer.weight, nn.Parameter)
    assert (weight.dtype, layer.weight.dtype, layer.weight.grad.dtype) == (pm.float32, pm.float64, pm.float64)
    assert weight.grad is gradient


def test_what_a_class_says_is_loaded(settings):
    class Half(pm.Tensor):
        @classmethod
        def __torch_function__(cls, function, kinds, args=(), kwargs=None):
            if function is pm.Tensor.module_load:
                return args[1] / 2 if not isinstance(args[1], Half) else args[1].detach()
            return super().__torch_function__(function, kinds, args, kwargs or {})

    settings.set_swap_module_params_on_conversion(True)
    layer = nn.Linear(1, 1, bias=False)
    layer.weight = nn.Parameter(pm.tensor([[1.0]]).as_subclass(Half))
    layer.load_state_dict({"weight": pm.tensor([[6.0]])})
    assert layer.weight.tolist() == [[3.0]] and layer.weight.requires_grad
    same = type("Same", (pm.Tensor,), {"module_load": lambda self, other, assign=False: other})
    layer.weight = nn.Parameter(pm.tensor([[1.0]]).as_subclass(same))
    with pytest.raises(RuntimeError, match="module_load returned one of self or other"):
        layer.load_state_dict({"weight": pm.tensor([[6.0]])})


def test_assigned_parameters_require_what_the_old_ones_did():
    layer = nn.Linear(1, 1).requires_grad_(False)
    layer.load_state_dict({"weight": nn.Parameter(pm.ones(1, 1)), "bias": pm.ones(1)}, assign=True)
    assert not layer.weight.requires_grad and not layer.bias.requires_grad


def test_one_class_of_handles():
    x, layer = pm.ones(1, requires_grad=True), nn.Linear(1, 1)
    handles = [x.register_hook(print), layer.register_forward_hook(print), (x * 2).grad_fn.register_hook(print)]
    assert all(isinstance(handle, RemovableHandle) for handle in handles)
    hooks, extra = collections.OrderedDict(), collections.OrderedDict()
    handle = RemovableHandle(hooks, extra_dict=extra)
    hooks[handle.id] = extra[handle.id] = "called"
    assert handle.hooks_dict_ref() is hooks
    with handle:
        again = pickle.loads(pickle.dumps(handle))
    assert (len(hooks), len(extra), again.id) == (0, 0, handle.id)


def test_a_hook_of_states_is_registered_one_way():
    layer, seen = nn.Linear(1, 1), []

    def hook(module, state, prefix, metadata):
        seen.append(prefix)

    layer.register_state_dict_post_hook(hook)
    layer.state_dict(prefix="a.")
    assert seen == ["a."]
    with pytest.raises(RuntimeError, match="previously registered via register_state_dict_post_hook"):
        layer._register_state_dict_hook(hook)


def test_a_state_that_was_loaded_is_free_at_once():
    layer, state = nn.Sequential(nn.Linear(2, 2)), {"0.weight": pm.ones(2, 2), "0.bias": pm.ones(2)}
    seen = weakref.ref(state["0.weight"])
    gc.disable()
    try:
        layer.load_state_dict(state)
        state.clear()
        assert seen() is None
    finally:
        gc.enable()
