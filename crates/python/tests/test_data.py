"""`data` and `set_`: other memory, the same tensor. What is expected is what PyTorch 2.15 does."""

import gc
import weakref

import pytest

import plimsoll as pm


class Parameter(pm.Tensor):
    def __new__(cls, data, requires_grad=True):
        return pm.Tensor._make_subclass(cls, data, requires_grad)


def test_data_is_the_same_memory_outside_the_graph():
    p = pm.ones(2, requires_grad=True)
    data = p.data
    assert (data.requires_grad, data.is_leaf, data._base) == (False, True, None)
    data.add_(1)
    assert p.tolist() == [2.0, 2.0] and data.data_ptr() == p.data_ptr() and p.data is not data


def test_a_parameter_keeps_its_identity():
    device = pm.private_cpu()
    p = Parameter(pm.ones(256, device=device))
    seen = []
    p.register_hook(lambda grad: seen.append(grad.tolist()[0]))
    p.label = "weight"
    p.grad = gradient = pm.zeros(256, device=device)
    same, reference = id(p), weakref.ref(p)
    replacement = pm.full((256,), 5.0, device=device)
    p.data = replacement
    assert pm.memory_allocated(device) == 2048  # gradient and new memory; the old is gone
    assert id(p) == same and reference() is p and type(p) is Parameter and p.label == "weight"
    assert (p.requires_grad, p.is_leaf, p.grad is gradient) == (True, True, True)
    replacement.mul_(2)
    assert p.tolist() == [10.0] * 256 and p.data_ptr() == replacement.data_ptr()
    (p * 3).sum().backward()
    assert (p.grad is gradient, gradient.tolist()[0], seen) == (True, 3.0, [3.0])
    del p
    assert reference() is None


def test_a_graph_from_before_still_leads_to_it():
    w = pm.tensor([1.0, 2.0], requires_grad=True)
    x = pm.tensor([3.0, 4.0], requires_grad=True)
    loss = (w * x).sum()
    w.data = pm.tensor([10.0, 20.0])
    loss.backward()
    assert (w.grad.tolist(), x.grad.tolist()) == ([3.0, 4.0], [10.0, 20.0])
    view = w.view(1, 2)
    w.data = pm.zeros(2)
    assert view._base is w and view.requires_grad and view.tolist() == [[10.0, 20.0]]
    view.sum().backward()
    assert w.grad.tolist() == [4.0, 5.0]
    y = w * 2
    y.data = pm.ones(2)
    assert y.grad_fn is not None and y.tolist() == [1.0, 1.0]
    w.grad = None
    y.sum().backward()
    assert w.grad.tolist() == [2.0, 2.0]


def test_shape_dtype_and_device_may_change():
    device = pm.private_cpu()
    p = pm.ones(2, requires_grad=True)
    p.data = pm.zeros(3, dtype=pm.float64, device=device)
    assert (p.shape, p.dtype, p.device, p.requires_grad) == ((3,), pm.float64, device, True)
    p.data = p.data.to("cpu")
    (p * 2).sum().backward()
    assert p.grad.dtype is pm.float64 and pm.memory_allocated(device) == 0
    with pytest.raises(RuntimeError, match="floating point"):
        p.data = pm.ones(2, dtype=pm.int64)
    with pytest.raises(TypeError):
        p.data = 3
    p.data = p * 2
    assert (p.is_leaf, p.grad_fn, p.requires_grad) == (True, None, True)


def test_set():
    p = pm.ones(2, requires_grad=True)
    source = pm.zeros(3)
    with pytest.raises(RuntimeError, match="no_grad"):
        p.set_(source)
    with pm.no_grad():
        assert p.set_(source) is p
    assert (p.shape, p.requires_grad, p.data_ptr() == source.data_ptr()) == ((3,), True, True)
    with pytest.raises(TypeError, match="dtype"):
        pm.ones(2).set_(pm.zeros(2, dtype=pm.int64))


def test_cycles_are_collected_afterwards_too():
    device = pm.private_cpu()
    x = pm.ones(4, device=device, requires_grad=True)
    x.foo = [x]
    x.register_hook(lambda grad: grad * x)
    view = x.view(2, 2)
    x.data = pm.ones(4, device=device)
    gone = weakref.ref(x)
    del x
    gc.collect()
    assert gone() is view._base and gone().foo[0] is gone()
    del view
    gc.collect()
    assert gone() is None and pm.memory_allocated(device) == 0
