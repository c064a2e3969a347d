"""Who shares memory with whom: gradients and what they were given as, parameters with each other, tensors and arrays."""

import subprocess
import sys
import warnings

import numpy as np
import pytest

import plimsoll as pm
from plimsoll import nn


def test_what_grad_returns_is_apart_from_what_it_was_given():
    x = pm.rand(4, requires_grad=True)
    v = pm.ones(4)
    for y in (pm.cat([x[:2], x[2:]]), pm.stack(x.unbind(0))):
        for _ in range(2):
            (g,) = pm.autograd.grad(y, x, v, retain_graph=True)
            assert g.add_(1).tolist() == [2.0] * 4
            assert v.tolist() == [1.0] * 4
    _, r = pm.autograd.functional.vjp(lambda x: pm.cat([x[:2], x[2:]]), x.detach(), v)
    r.fill_(7)
    assert v.tolist() == [1.0] * 4


def test_gradients_of_packed_operands_are_apart():
    h = pm.rand(1, 2, 5, 12, requires_grad=True)
    q, k, v = h.split(4, -1)
    out = nn.functional.scaled_dot_product_attention(q, k, v)
    gq, gk, gh = pm.autograd.grad(out.sum(), [q, k, h])
    before = gk.clone()
    whole = gh.clone()
    gq.zero_()
    assert gh.equal(whole)
    gh.fill_(9)
    assert gk.equal(before)


@pytest.mark.parametrize("make", [pm.optim.SGD, pm.optim.AdamW, pm.optim.Adam, pm.optim.RMSprop])
def test_weights_tied_by_their_memory_are_trained(make):
    first, second = nn.Linear(3, 3, bias=False), nn.Linear(3, 3, bias=False)
    second.weight.data = first.weight.data
    optimizer = make([first.weight, second.weight], lr=0.1)
    first.weight.grad, second.weight.grad = pm.ones(3, 3), pm.full((3, 3), 2.0)
    before = first.weight.detach().clone()
    optimizer.step()
    # One after the other, from where the other ended.
    alone = [before.clone().requires_grad_(True) for _ in range(2)]
    for weight, grad in zip(alone, (1.0, 2.0)):
        if weight is alone[1]:
            weight.data = alone[0].detach().clone()
        weight.grad = pm.full((3, 3), grad)
        make([weight], lr=0.1).step()
    assert pm.allclose(first.weight, alone[1])
    assert second.weight.equal(first.weight)


def test_a_gradient_may_be_its_parameter():
    p = pm.tensor([1.0, -2.0], requires_grad=True)
    p.grad = p.detach()
    pm.optim.SGD([p], lr=0.25).step()
    assert p.tolist() == [0.75, -1.5]


def test_memory_shared_with_numpy_is_not_left_behind():
    n = np.arange(6.0)
    x = pm.from_numpy(n)
    for refused in (
        lambda: x.resize_(10),
        lambda: pm.add(pm.ones(8, dtype=pm.float64), 1, out=x),
    ):
        with pytest.raises(RuntimeError, match="Trying to resize storage that is not resizable"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            refused()
    x.fill_(7)
    assert n.tolist() == [7.0] * 6
    assert x.resize_(3).tolist() == [7.0] * 3
    own = pm.ones(3)
    array = own.numpy()
    with pytest.raises(RuntimeError, match="not resizable"):
        own.resize_(4)
    own.fill_(2)
    assert array.tolist() == [2.0] * 3
    assert pm.ones(3).resize_(5).shape == (5,)


def test_arrays_that_are_read_only():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        x = pm.from_numpy(np.broadcast_to(np.arange(3.0), (2, 3)))
    assert (x.stride(), x.untyped_storage().nbytes(), x.tolist()) == ((0, 1), 24, [[0.0, 1.0, 2.0]] * 2)
    with pytest.raises(TypeError, match="expected np.ndarray"):
        pm.from_numpy(np.float32(3))


def test_other_data_between_forward_and_backward():
    x = pm.ones(4, requires_grad=True)
    y = x.clone()
    y.data = pm.ones(2)
    with pytest.raises(RuntimeError, match=r"SumBackward0 returned an invalid gradient at index 0 - got \[2\]"):
        y.sum().backward()
    layer = nn.Linear(3, 2)
    out = layer(pm.ones(1, 3)).sum()
    layer.weight.data = pm.ones(2, 5)
    with pytest.raises(RuntimeError):
        out.backward()


def test_versions_count_on():
    x = pm.ones(4)
    x.add_(1)
    x.resize_(7)
    x.set_(pm.zeros(3))
    assert x._version == 3
    x.data = pm.zeros(2)
    assert x._version == 3


NUMBERS_OF_TENSORS = """
import warnings
import plimsoll as pm

x = pm.tensor(1.0, requires_grad=True)
warnings.simplefilter("error")
with pm.no_grad():
    assert float(x) == 1.0
assert float(x.detach()) == 1.0
warnings.simplefilter("always")
with warnings.catch_warnings(record=True) as said:
    assert [float(x), float(x)] == [1.0, 1.0]
print([str(one.message).splitlines()[0] for one in said])
"""


def test_a_number_of_a_tensor_warns_only_where_gradients_are_recorded():
    # In a process of its own: the warning comes once, and another test may have had it.
    done = subprocess.run([sys.executable, "-c", NUMBERS_OF_TENSORS], capture_output=True, text=True)
    said = "Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior."
    assert done.stdout == f"{[said]}\n", done.stderr


def test_bounds_that_are_tensors_are_no_numbers():
    small = pm.clamp(pm.tensor(1, dtype=pm.int8), pm.tensor(300, dtype=pm.int16))
    assert (small.dtype, small.item()) == (pm.int16, 300)
    wide = pm.clamp(pm.tensor([16777217], dtype=pm.int32), min=pm.tensor(0.0, dtype=pm.float64))
    assert wide.item() == 16777217.0
    assert pm.clamp(pm.tensor([100, 50], dtype=pm.uint8), pm.tensor(-5)).tolist() == [251, 251]
    assert pm.ones(3).clip(pm.tensor(2.0), 3).tolist() == [2.0] * 3
    with pytest.raises(RuntimeError, match="min.*max"):
        pm.clamp(pm.ones(3))
