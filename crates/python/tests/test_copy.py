"""copy, deepcopy and pickle: values, strides, gradients, classes and attributes; compared with PyTorch 2.15."""

import copy
import pickle

import pytest

import plimsoll as pm

DTYPES = ["bool", "uint8", "int32", "int64", "float16", "bfloat16", "float32", "float64"]


class Named(pm.Tensor):
    pass


class Parameter(pm.Tensor):
    __torch_function__ = pm._plimsoll._disabled_torch_function_impl

    def __new__(cls, data, requires_grad=True):
        return pm.Tensor._make_subclass(cls, data, requires_grad)


def leaf():
    x = Parameter(pm.tensor([1.0, 2.0]))
    (x * x).sum().backward()
    x.tags = ["a"]
    return x


def test_a_shallow_copy_shares_memory_and_attributes():
    x = leaf()
    y = copy.copy(x)
    assert y is not x and type(y) is Parameter and y.data_ptr() == x.data_ptr()
    assert (y.requires_grad, y.is_leaf, y.grad) == (True, True, None)
    assert y.tags is x.tags and y.__dict__ is not x.__dict__
    result = copy.copy(x * 2)
    assert (result.requires_grad, result.is_leaf) == (True, True)


def test_a_deep_copy_is_the_owner_of_everything():
    x = leaf()
    x.self = x
    y = copy.deepcopy(x)
    assert type(y) is Parameter and y.data_ptr() != x.data_ptr()
    assert (y.tolist(), y.requires_grad, y.is_leaf) == ([1.0, 2.0], True, True)
    assert y.grad.tolist() == [2.0, 4.0] and y.grad is not x.grad
    assert y.tags == ["a"] and y.tags is not x.tags and y.self is y
    y.grad.zero_()
    assert x.grad.tolist() == [2.0, 4.0]


def test_a_deep_copy_of_a_result_is_refused():
    x = leaf()
    with pytest.raises(RuntimeError, match="only leaves"):
        copy.deepcopy(x * 2)
    assert copy.deepcopy((x * 2).detach()).tolist() == [2.0, 4.0]


def test_a_deep_copy_keeps_strides_and_who_shares_memory():
    device = pm.private_cpu()
    x = pm.arange(6, device=device).float().reshape(2, 3).t()[1:]
    first, again, turned, alone = copy.deepcopy([x, x, x.t(), pm.ones(1)])
    assert first is again and (first.stride(), first.storage_offset()) == ((1, 3), 1)
    assert first.tolist() == [[1.0, 4.0], [2.0, 5.0]] and first.device == device
    turned.zero_()
    assert first.tolist() == [[0.0, 0.0], [0.0, 0.0]] and x.tolist() == [[1.0, 4.0], [2.0, 5.0]]
    assert alone.tolist() == [1.0] and first._base is None
    before = pm.memory_allocated(device)
    copies = copy.deepcopy([x, x.t()])
    assert pm.memory_allocated(device) - before == 512  # one copy of 24 bytes, rounded
    del copies


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("name", DTYPES)
def test_pickles_keep_values_and_strides(name, protocol):
    x = pm.arange(6).to(getattr(pm, name)).reshape(2, 3).t()[1:]
    y = pickle.loads(pickle.dumps(x, protocol))
    assert type(y) is pm.Tensor and (y.dtype, y.shape, y.stride()) == (x.dtype, (2, 2), (1, 3))
    assert y.tolist() == x.tolist() and not y.requires_grad and y._base is None


@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (1,)])
def test_pickles_of_few_elements(shape):
    x = pm.ones(*shape) if shape else pm.tensor(7.5)
    y = pickle.loads(pickle.dumps(x))
    assert (y.shape, y.tolist()) == (x.shape, x.tolist())
    assert copy.deepcopy(x).tolist() == x.tolist()


def test_pickles_of_classes_and_attributes():
    x = leaf()
    both = pickle.loads(pickle.dumps([x, x]))
    y = both[0]
    assert both[1] is y and type(y) is Parameter
    assert (y.requires_grad, y.is_leaf, y.grad, y.tags) == (True, True, None, ["a"])
    z = pickle.loads(pickle.dumps(x * 2))
    assert (type(z), z.requires_grad, z.is_leaf, z.tolist()) == (pm.Tensor, True, True, [2.0, 4.0])
    named = Named([2**24 + 1])
    assert type(pickle.loads(pickle.dumps(named))) is Named


def test_a_pickle_of_a_small_part_is_small():
    row = pm.zeros(1000, 1000)[0]
    assert len(pickle.dumps(row)) < 5000


def test_a_pickle_can_be_wrong_without_harm():
    rebuild = pm._plimsoll._rebuild_tensor
    good = (pm.Tensor, bytes(16), "float32", (2, 2), (2, 1), "cpu", False)
    assert rebuild(*good).tolist() == [[0.0, 0.0], [0.0, 0.0]]

    def wrong(position, value):
        return good[:position] + (value,) + good[position + 1 :]

    for position, value, expected in [
        (0, list, TypeError),
        (1, bytes(15), ValueError),
        (1, bytes(12), RuntimeError),
        (2, "float31", ValueError),
        (3, (2**40, 2**40), (RuntimeError, ValueError)),
        (3, (-1, 2), (RuntimeError, ValueError)),
        (4, (2**62, 2**62), (RuntimeError, ValueError)),
        (4, (2,), (RuntimeError, ValueError)),
        (5, "tpu:0", RuntimeError),
    ]:
        with pytest.raises(expected):
            rebuild(*wrong(position, value))
    with pytest.raises(ValueError, match="bool"):
        rebuild(pm.Tensor, b"\x02", "bool", (1,), (1,), "cpu", False)
    with pytest.raises(RuntimeError, match="float"):
        rebuild(pm.Tensor, bytes(8), "int64", (1,), (1,), "cpu", True)
    with pytest.raises(RuntimeError, match="only accounts for memory"):
        pickle.dumps(pm.zeros(3, device=pm.dry("cpu")))


def test_dtypes_and_devices_are_pickled_by_name():
    for name in DTYPES:
        dtype = getattr(pm, name)
        assert pickle.loads(pickle.dumps(dtype)) is dtype and copy.deepcopy(dtype) is dtype
        assert pm.zeros(1, dtype=dtype).dtype is dtype
    assert pickle.loads(pickle.dumps(pm.device("cpu"))) == pm.device("cpu")


def test_a_copied_parameter_has_no_attributes():
    p = pm.nn.Parameter(pm.ones(2))
    p.tag = "x"
    made = copy.deepcopy(p)
    assert made.__dict__ == {} and type(made) is pm.nn.Parameter and made.requires_grad
