"""`autograd.graph.allow_mutation_on_saved_tensors`: gradients of values that were overwritten, and what is copied for them."""

from __future__ import annotations

import gc

import pytest

import plimsoll as pm
from plimsoll.autograd.graph import allow_mutation_on_saved_tensors


def _by_method(x):
    x.mul_(3)


def _by_operator(x):
    x += 1


def _by_index(x):
    x[0] = 7


def _by_target(x):
    pm.sin(pm.ones(3), out=x)


def _by_view(x):
    x[1:].zero_()


def _by_copy(x):
    x.copy_(pm.zeros(3))


@pytest.mark.parametrize("write", [_by_method, _by_operator, _by_index, _by_target, _by_view, _by_copy])
def test_gradients_are_those_of_the_values_that_were_saved(write) -> None:
    a = pm.tensor([1.0, 2.0, 3.0], requires_grad=True)
    kept = pm.tensor([4.0, 5.0, 6.0])
    with allow_mutation_on_saved_tensors() as context:
        out = (a * kept).sum()
        write(kept)
        assert len(context.cloned) == 1
        out.backward()
        assert len(context.cloned) == 0
    assert a.grad.tolist() == [4.0, 5.0, 6.0]


def test_outside_of_it_backward_refuses() -> None:
    a = pm.ones(3, requires_grad=True)
    kept = pm.ones(3)
    out = (a * kept).sum()
    kept.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.backward()


def test_nothing_is_copied_without_a_write_and_one_copy_serves_all() -> None:
    with allow_mutation_on_saved_tensors() as context:
        a = pm.ones(3, requires_grad=True).clone()
        first, second = a**2, a**2
        assert len(context.cloned) == 0
        a.sin_()
        assert len(context.cloned) == 1
        del first, second
        gc.collect()
        assert len(context.cloned) == 0


def test_backward_belongs_inside_and_contexts_do_not_nest() -> None:
    with allow_mutation_on_saved_tensors():
        out = (pm.ones(3, requires_grad=True) ** 2).sum()
        with pytest.raises(RuntimeError, match="cannot be nested"), allow_mutation_on_saved_tensors():
            pass
    with pytest.raises(AssertionError, match="outside of the 'allow_mutation_on_saved_tensors' context"):
        out.backward()
