"""Tensors made of other data: what is shared and what is copied."""

import warnings

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


def test_tensors_of_pytorchs_old_classes():
    numpy = pytest.importorskip("numpy")
    x = pm.arange(3)
    assert x.type(pm.FloatTensor).type() == "torch.FloatTensor" and x.type("torch.DoubleTensor").dtype is pm.float64
    assert x.type(pm.Tensor).dtype is pm.get_default_dtype() and x.type(pm.LongTensor) is x
    assert pm.FloatTensor(numpy.ones((2, 3))).tolist() == [[1.0] * 3] * 2
    assert pm.FloatTensor(pm.Size([2, 1])).shape == (2, 1) and pm.FloatTensor(numpy.int64(2)).shape == (2,)
    assert pm.LongTensor((2, 1)).tolist() == [2, 1]
    with pytest.raises(TypeError, match="data must be a sequence"):
        pm.FloatTensor(numpy.float32(2.5))


def test_tensors_of_other_sequences():
    from collections import deque

    assert pm.tensor(deque([1.0, 2.0])).tolist() == [1.0, 2.0] and pm.as_tensor(deque([1, 2])).dtype is pm.int64
    assert pm.tensor([deque([1, 2]), (3, 4)]).tolist() == [[1, 2], [3, 4]] == pm.tensor([[1, 2], deque([3, 4])]).tolist()
    for other in ("ab", {1, 2}, {1: 2}.values(), iter([1])):
        with pytest.raises(TypeError if isinstance(other, str) else RuntimeError):
            pm.tensor(other)


def test_a_tensor_of_a_tensor_warns():
    source = pm.ones(2)
    for make in (pm.tensor, source.new_tensor):
        with pytest.warns(UserWarning, match="To copy construct from a tensor"):
            made = make(source)
        assert made.tolist() == [1.0, 1.0] and made is not source
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pm.tensor([pm.tensor(1.0)])
        pm.as_tensor(source)


def test_dlpack_takes_a_device_and_copies():
    x = pm.ones(3)
    assert pm.from_dlpack(x, device="cpu").data_ptr() == x.data_ptr() and pm.from_dlpack(x, copy=False).data_ptr() == x.data_ptr()
    copied = pm.utils.dlpack.from_dlpack(x, copy=True)
    assert copied.data_ptr() != x.data_ptr() and copied.tolist() == [1, 1, 1]
    with pytest.raises(RuntimeError):
        pm.from_dlpack(3)
