"""Two tensors that change places."""

import weakref

import plimsoll
import pytest
from plimsoll import nn
from plimsoll.utils import swap_tensors


def test_all_of_it_goes_over():
    plain, parameter = plimsoll.arange(2), nn.Parameter(plimsoll.zeros(3, dtype=plimsoll.float64))
    plain.note, parameter.mark = "plain", "parameter"
    parameter.grad = plimsoll.full((3,), 5.0, dtype=plimsoll.float64)
    before, places = plimsoll.memory_allocated(), (plain.data_ptr(), parameter.data_ptr())
    plimsoll.reset_peak_memory_stats()
    swap_tensors(plain, parameter)
    assert plimsoll.memory_allocated() == plimsoll.max_memory_allocated() == before, "no bytes move"
    assert (parameter.data_ptr(), plain.data_ptr()) == places
    assert type(plain) is nn.Parameter and type(parameter) is plimsoll.Tensor
    assert plain.tolist() == [0, 0, 0] and plain.dtype is plimsoll.float64 and plain.requires_grad
    assert parameter.tolist() == [0, 1] and parameter.dtype is plimsoll.int64 and not parameter.requires_grad
    assert plain.grad.tolist() == [5, 5, 5] and parameter.grad is None
    assert plain.__dict__ == {"mark": "parameter"} and parameter.__dict__ == {"note": "plain"}
    swap_tensors(plain, plain)
    assert plain.tolist() == [0, 0, 0] and plain.requires_grad


def test_who_holds_an_object_holds_its_new_content():
    layer = nn.Linear(2, 2, bias=False)
    optimizer = plimsoll.optim.SGD(layer.parameters(), lr=0.1)
    swap_tensors(layer.weight, nn.Parameter(plimsoll.ones(2, 2)))
    layer(plimsoll.ones(1, 2)).sum().backward()
    optimizer.step()
    assert layer.weight.flatten().tolist() == pytest.approx([0.9] * 4)
    assert optimizer.param_groups[0]["params"][0] is layer.weight
    # Views stay with the memory that they were made of.
    first, second = plimsoll.ones(2), plimsoll.zeros(2)
    view = first[:1]
    swap_tensors(first, second)
    view.fill_(7)
    assert first.tolist() == [0, 0] and second.tolist() == [7, 1]


def test_what_is_not_swapped_says_why():
    first, second = plimsoll.ones(2), plimsoll.zeros(2)
    held = weakref.ref(second)
    with pytest.raises(RuntimeError, match="Cannot swap t2 because it has weakref"):
        swap_tensors(first, second)
    assert held() is second
    with pytest.raises(RuntimeError, match="t1 is the result of MulBackward0"):
        swap_tensors(plimsoll.ones(2, requires_grad=True) * 2, first)
    with pytest.raises(TypeError, match="t2 is a int"):
        swap_tensors(first, 3)
    assert first.tolist() == [1, 1]
