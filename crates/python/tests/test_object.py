"""A tensor as a Python object: one object for one tensor, attributes, classes, weak references, the garbage collector."""

import gc
import threading
import weakref

import pytest

import plimsoll as pm
from collecting import collected


class Named(pm.Tensor):
    """A subclass with a method of its own."""

    def title(self):
        return f"{self.label} of {tuple(self.shape)}"


class Parameter(pm.Tensor):
    # As in PyTorch: what is computed from a parameter is none.
    __torch_function__ = pm._plimsoll._disabled_torch_function_impl

    def __new__(cls, data, requires_grad=True):
        return pm.Tensor._make_subclass(cls, data, requires_grad)


def test_one_object_for_one_tensor():
    x = pm.ones(2, requires_grad=True)
    (x * x).sum().backward()
    assert x.grad is x.grad
    gradient = pm.ones(2)
    x.grad = gradient
    assert x.grad is gradient
    assert x.contiguous() is x and x.float() is x and x.cpu() is x and x.to(pm.float32) is x
    assert x.requires_grad_() is x and x.detach() is not x.detach()
    view = x.view(1, 2)
    assert view._base is x and view[0]._base is x
    assert x._base is None and view.detach()._base is None


def test_a_hook_gets_the_object_of_its_gradient():
    seen = []
    x = pm.ones(2, requires_grad=True)
    gradient = pm.ones(2)
    gradient.note = "mine"
    x.register_hook(seen.append)
    x.backward(gradient)
    assert seen[0] is gradient
    assert seen[0].note == "mine"


def test_attributes():
    x = pm.ones(2)
    x.label = "weights"
    x.labels = [x.label]
    assert (x.label, x.__dict__, vars(x)) == ("weights", x.__dict__, {"label": "weights", "labels": ["weights"]})
    del x.label
    assert not hasattr(x, "label")
    with pytest.raises(AttributeError, match="nothing"):
        x.nothing
    with pytest.raises(AttributeError, match="nothing"):
        del x.nothing
    for fixed in ["shape", "is_leaf", "grad_fn", "dtype", "_base", "ndim"]:
        with pytest.raises(AttributeError, match=fixed):
            setattr(x, fixed, 3)
    x.sum = 3  # an attribute may hide a method, as in PyTorch
    assert x.sum == 3
    del x.sum
    assert x.sum().item() == 2.0
    x.__dict__ = {"other": 1}
    assert (x.other, hasattr(x, "names")) == (1, False)
    assert (x + 1).__dict__ == {}


@pytest.mark.parametrize("by_hand", [True, False])
def test_attributes_and_class_outlive_the_object(by_hand):
    x = pm.ones(2, requires_grad=True)
    gradient = pm.Tensor._make_subclass(Named, pm.ones(2))
    if by_hand:
        gradient.label = "gradient"
    else:
        vars(gradient)["label"] = "gradient"
    x.grad = gradient
    gone = weakref.ref(gradient)
    del gradient
    gc.collect()
    assert gone() is None
    assert type(x.grad) is Named
    assert x.grad.title() == "gradient of (2,)"
    kept = x.grad
    kept.label = "other"
    del kept
    assert x.grad.title() == "other of (2,)"


def test_a_base_that_only_views_hold():
    base = Named([[1.0, 2.0], [3.0, 4.0]])
    base.label = "base"
    view = base[0]
    del base
    gc.collect()
    assert view._base.title() == "base of (2, 2)"
    assert view._base is view._base


def test_subclasses():
    x = Named([1, 2, 3])
    x.label = "x"
    assert isinstance(x, pm.Tensor) and isinstance(x, Named) and x.__class__ is Named
    assert (x.tolist(), x.dtype, x.title()) == ([1.0, 2.0, 3.0], pm.float32, "x of (3,)")
    assert Named(2, 3).shape == (2, 3) and Named().shape == (0,) and Named((2, 3)).tolist() == [2.0, 3.0]
    whole = pm.tensor([1, 2])
    alias = Named(whole)
    assert (type(alias), alias.data_ptr() == whole.data_ptr(), alias.dtype) == (Named, True, pm.int64)
    with pytest.raises(TypeError, match="float"):
        pm.Tensor(3.5)
    with pytest.raises(TypeError, match="requires_grad"):
        pm.Tensor([1], requires_grad=True)
    with pytest.raises(TypeError, match="not a subclass"):
        pm.Tensor._make_subclass(list, whole)


def test_a_subclass_with_an_init_of_its_own():
    class Scaled(pm.Tensor):
        def __init__(self, values):
            self.scale = 2.0

    x = Scaled([1.0])
    assert (x.scale, x.tolist()) == (2.0, [1.0])
    y = pm.ones(1, requires_grad=True)
    y.grad = x
    assert y.grad is x
    assert x.view(1, 1)._base is x


def test_parameters():
    data = pm.ones(2)
    p = Parameter(data)
    assert (type(p), p.requires_grad, p.is_leaf, p is data) == (Parameter, True, True, False)
    assert p.data_ptr() == data.data_ptr()
    assert type(p + 1) is pm.Tensor and type(p.detach()) is pm.Tensor
    (p * 3).sum().backward()
    assert p.grad.tolist() == [3.0, 3.0]
    assert p.requires_grad_(False) is p
    seen = pm.ones(2, requires_grad=True)
    kept = (seen * 2).as_subclass(Named)
    kept.sum().backward()
    assert (type(kept), seen.grad.tolist()) == (Named, [2.0, 2.0])


def test_a_hook_on_a_leaf_that_uses_its_tensor_is_collected():
    def make(device):
        x = pm.ones(4, device=device, requires_grad=True)
        x.register_hook(lambda grad: grad * x)
        (x * 2).sum().backward()
        assert x.grad.tolist() == [2.0] * 4
        return x

    assert collected(make)


def test_a_hook_whose_handle_is_kept_is_collected():
    def make(device):
        x = pm.ones(4, device=device, requires_grad=True)
        x.handle = x.register_hook(lambda grad: grad * x)
        return x

    assert collected(make)


def test_a_hook_on_a_result_that_uses_it_is_collected():
    def make(device):
        x = pm.ones(4, device=device, requires_grad=True)
        y = x * 2
        y.register_hook(lambda grad: grad * y)
        return y

    assert collected(make)


def test_cycles_through_attributes_are_collected():
    def itself(device):
        x = pm.ones(4, device=device)
        x.self = x
        return x

    def in_a_list(device):
        x = pm.ones(4, device=device)
        x.foo = [x]
        return x

    def of_two(device):
        x, y = pm.ones(4, device=device), Named(pm.ones(4, device=device))
        x.other, y.other = y, x
        return y

    def through_a_local_class(device):
        class Local(pm.Tensor):
            pass

        x = Local(pm.ones(4, device=device))
        Local.instance = x
        return x

    assert all(collected(make) for make in [itself, in_a_list, of_two, through_a_local_class])


def test_what_rust_holds_too_is_not_collected():
    device = pm.private_cpu()
    x = pm.ones(4, device=device, requires_grad=True)
    gradient = pm.ones(4, device=device)
    gradient.foo = [gradient]
    gradient.label = "kept"
    x.grad = gradient
    gone = weakref.ref(gradient)
    del gradient
    gc.collect()
    assert gone() is x.grad and x.grad.label == "kept" and x.grad.foo[0] is x.grad
    x.grad = None
    gc.collect()
    assert gone() is None
    # The object is garbage by another's cycle, the tensor is not: attributes come back.
    gradient = pm.ones(4, device=device)
    gradient.label = "again"
    x.grad = gradient
    cycle = [gradient]
    cycle.append(cycle)
    gone = weakref.ref(gradient)
    del gradient, cycle
    gc.collect()
    assert gone() is None and x.grad.label == "again"
    del x
    gc.collect()
    assert pm.memory_allocated(device) == 0


def test_weak_references_and_sets():
    x = pm.ones(2)
    called = []
    reference = weakref.ref(x, called.append)
    table = weakref.WeakValueDictionary(x=x)
    assert reference() is x and table["x"] is x and x in {x} and hash(x) == id(x)
    del x
    assert reference() is None and called == [reference] and len(table) == 0


def test_objects_made_and_dropped_by_many_threads():
    x = pm.ones(2, requires_grad=True)
    x.grad = pm.zeros(2)
    x.grad.label = "shared"
    wrong = []

    def work():
        for _ in range(300):
            first = x.grad
            if first is not x.grad or first.label != "shared":
                wrong.append(first)
            y = pm.ones(2, requires_grad=True)
            y.register_hook(lambda grad, y=y: grad * y)
            (y * 2).sum().backward()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(50):
        gc.collect()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.collecting
def test_a_collection_while_an_object_is_made():
    before, youngest = gc.get_threshold(), gc.get_stats()[0]["collections"]
    gc.set_threshold(1, 1, 1)
    try:
        x = pm.ones(2)
        kept = [x + x for _ in range(300)] + [Named([1.0, 1.0]) for _ in range(300)]
    finally:
        gc.set_threshold(*before)
    assert gc.get_stats()[0]["collections"] - youngest > 10
    assert len(kept) == 600 and kept[0].tolist() == [2.0, 2.0] and kept[-1].tolist() == [1.0, 1.0]


def test_objects_of_tensors_that_changed_in_place_are_known_to_all_holders():
    a, b = pm.ones(2, requires_grad=True), pm.ones(3, requires_grad=True)
    (a.sum() + 5 * b.sum()).backward()
    for leaf in (a, b):
        leaf.grad.detach_()
    assert a.grad is not b.grad and b.grad is b.grad
    assert (a.grad.tolist(), b.grad.tolist()) == ([1.0, 1.0], [5.0, 5.0, 5.0])
    a.grad.note = 1
    a.grad.detach_()
    assert a.grad.note == 1

    def change(name, *arguments):
        x = pm.ones(1, 4)
        view = x[:, :1]
        assert getattr(x, name)(*arguments) is x
        assert view._base is x and x._base is None and x.detach_()._base is None
        place = weakref.ref(x)
        del x
        others = [iter({1: 2}.items()) for _ in range(300)]
        assert place() is None and type(view._base) is pm.Tensor, others

    for name, *arguments in [("t_",), ("unsqueeze_", 0), ("squeeze_",), ("transpose_", 0, 1), ("as_strided_", (2,), (1,))]:
        change(name, *arguments)


def test_a_gradient_that_is_detached_lets_its_graph_go():
    x = pm.ones(2, requires_grad=True)
    x.exp().sum().backward(create_graph=True)
    grad = x.grad
    grad.detach_()
    assert x.grad is grad and grad.grad_fn is None and not grad.requires_grad
    x.sum().backward()
    assert pm.allclose(grad, pm.full((2,), 2.718281828 + 1))
    with pytest.raises(RuntimeError, match="detach views in-place"):
        x[:1].detach_()
