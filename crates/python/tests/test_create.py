"""Tensors made of other data: what is shared and what is copied."""

import plimsoll as pm
import pytest


def test_as_tensor_shares_what_it_can():
    numpy = pytest.importorskip("numpy")
    x = pm.ones(3)
    assert pm.as_tensor(x) is x
    assert pm.as_tensor(x, dtype=pm.float32) is x
    assert pm.as_tensor(x, dtype=pm.float64).dtype is pm.float64
    array = numpy.zeros(3, dtype=numpy.float32)
    pm.as_tensor(array)[0] = 5
    assert array[0] == 5
    assert pm.as_tensor(array, dtype=pm.int64).tolist() == [5, 0, 0]
    assert pm.as_tensor([1.0, 2.0]).tolist() == [1.0, 2.0]
