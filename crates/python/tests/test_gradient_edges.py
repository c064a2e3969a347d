"""Edges of the graph as what `backward` and `grad` start from and ask for, each with what PyTorch 2.15 does."""

import gc
from collections import OrderedDict

import pytest

import plimsoll as pm
from plimsoll.autograd import backward, grad
from plimsoll.autograd.graph import GradientEdge, get_gradient_edge


def leaf(*values):
    return pm.tensor(values, dtype=pm.float64, requires_grad=True)


def test_an_edge_stands_for_its_tensor():
    x = leaf(3.0)
    y = x * x
    edge = get_gradient_edge(y)
    assert (edge.node is y.grad_fn, edge.output_nr, edge.ownership_token) == (True, 0, None)
    z = y * 5
    (by_edge,) = grad(z, edge, retain_graph=True)
    (by_leaf,) = grad(z, get_gradient_edge(x), retain_graph=True)
    assert (by_edge.item(), by_leaf.item(), x.grad) == (5.0, 30.0, None)
    by_name = grad(z, {"y": y, "x": get_gradient_edge(x)})
    assert {name: one.item() for name, one in by_name.items()} == {"y": 5.0, "x": 30.0}


def test_an_edge_holds_none_of_its_tensors_bytes():
    device = pm.private_cpu()
    x = pm.ones(1024, device=device).requires_grad_()
    before = pm.memory_allocated(device)
    y = x + 1
    edge = get_gradient_edge(y)
    z = y.sum()
    del y
    gc.collect()
    assert pm.memory_allocated(device) < before + 1024 * 4
    (found,) = grad(z, edge)
    assert found.tolist() == [1.0] * 1024


def test_backward_starts_from_an_edge():
    x = leaf(1.0, 2.0)
    edge = get_gradient_edge(x * 3)
    backward(edge, pm.tensor([1.0, 10.0], dtype=pm.float64))
    assert x.grad.tolist() == [3.0, 30.0]
    one = leaf(2.0)
    backward([get_gradient_edge(one * one)])  # one element: from one
    assert one.grad.item() == 4.0
    with pytest.raises(RuntimeError, match="only for scalar outputs"):
        backward(get_gradient_edge(x * 3))
    with pytest.raises(RuntimeError, match="shape"):
        backward(get_gradient_edge(x * 3), pm.ones(3, dtype=pm.float64))


def test_backward_reaches_edges_alone():
    x, w = leaf(2.0), leaf(5.0)
    y = x * w
    backward(y, inputs=[get_gradient_edge(x)], retain_graph=True)
    assert (x.grad.item(), w.grad) == (5.0, None)
    z = y * 3
    backward(z, inputs=get_gradient_edge(y), retain_graph=True)  # nothing is kept, and nothing behind it is reached
    assert (x.grad.item(), w.grad) == (5.0, None)
    y.backward(inputs={"w": w}.values())
    assert w.grad.item() == 2.0


class TwoAndThree(pm.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2, x * 3

    @staticmethod
    def backward(ctx, twice, thrice):
        return twice * 2 + thrice * 3


def test_the_second_output_of_a_node():
    x = leaf(1.0, 2.0)
    first, second = TwoAndThree.apply(x)
    edge = get_gradient_edge(second)
    assert (edge.node is first.grad_fn, edge.output_nr) == (True, 1)
    (found,) = grad(first.sum() + (second * 7).sum(), edge, retain_graph=True)
    assert found.tolist() == [7.0, 7.0]
    backward(edge, pm.ones(2, dtype=pm.float64))
    assert x.grad.tolist() == [3.0, 3.0]


def test_what_is_refused():
    x = leaf(1.0)
    with pytest.raises(RuntimeError, match="does not require gradients"):
        get_gradient_edge(pm.ones(1))
    y = x * 2
    with pytest.raises(RuntimeError, match="has 1 outputs, and no output 4"):
        grad(y, GradientEdge(y.grad_fn, 4))
    with pytest.raises(RuntimeError, match="cannot be used when the given input is a GradientEdge"):
        grad(y, get_gradient_edge(leaf(1.0)), materialize_grads=True)
    with pytest.raises(TypeError, match="a Tensor or a GradientEdge"):
        grad(y, [3])
    with pytest.raises(TypeError, match="must be a dict"):
        grad(y, OrderedDict(x=x))


def test_a_tensor_that_is_no_leaf_warns_when_its_grad_is_asked_for():
    y = leaf(1.0) * 2
    with pytest.warns(UserWarning, match="not a leaf"):
        assert y.grad is None
    y.retain_grad()
    assert y.grad is None


def test_a_write_through_data_is_noticed_by_a_second_derivative():
    x, w = leaf(2.0), leaf(3.0)
    data = x.data
    (first,) = grad(((w * data) ** 2).sum(), w, create_graph=True)
    data.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        grad(first.sum(), w)
