"""NumPy's arrays and numbers beside tensors: the types and dtypes that PyTorch 2.15 gives."""

import gc
import operator

import numpy as np
import pytest

import plimsoll as pm

FLOATS = np.array([1.0, 2.0])


def of(result):
    return type(result), result.dtype, result.tolist()


@pytest.mark.parametrize(
    "name, expected",
    [
        ("add", [2.0, 4.0]),
        ("sub", [0.0, 0.0]),
        ("mul", [1.0, 4.0]),
        ("truediv", [1.0, 1.0]),
        ("pow", [1.0, 4.0]),
        ("floordiv", [1.0, 1.0]),
        ("mod", [0.0, 0.0]),
        ("matmul", 5.0),
    ],
)
def test_a_tensor_before_an_array_gives_a_tensor_in_the_arrays_dtype(name, expected):
    x = pm.tensor([1.0, 2.0])
    assert of(getattr(operator, name)(x, FLOATS)) == (pm.Tensor, pm.float64, expected)
    if name == "truediv":
        assert of(FLOATS / x) == (pm.Tensor, pm.float64, expected)
    else:
        with pytest.raises(TypeError):
            getattr(operator, name)(FLOATS, x)


def test_an_array_of_one_element_is_no_number():
    x = pm.tensor([1.0, 2.0])
    assert of(x * np.array(2.0)) == of(x * np.array([2.0])) == (pm.Tensor, pm.float64, [2.0, 4.0])
    for refused in (lambda: pm.add(x, np.array(2.0)), lambda: x.mul(np.array(2)), lambda: pm.full((2,), np.array(2.0))):
        with pytest.raises(TypeError):
            refused()


def test_comparisons():
    x = pm.tensor([1.0, 3.0])
    assert of(x == FLOATS) == of(FLOATS == x) == (pm.Tensor, pm.bool, [True, False])
    for compare in (operator.lt, operator.ge):
        with pytest.raises(TypeError):
            compare(x, FLOATS)
    assert (x == None, x == "a", x != None) == (False, False, True)  # noqa: E711


def test_writing_in_place():
    x = pm.ones(2)
    x *= FLOATS
    assert of(x) == (pm.Tensor, pm.float64, [1.0, 2.0])
    with pytest.raises(RuntimeError, match="requires grad"):
        pm.ones(2, requires_grad=True) * FLOATS


@pytest.mark.parametrize("number", [np.float64(2), np.float32(2), np.float16(2)])
def test_numbers_of_numpy_are_numbers(number):
    x, whole = pm.tensor([1.0, 2.0]), pm.tensor([1, 2], dtype=pm.int32)
    assert of(x + number) == of(number + x) == of(whole + number) == (pm.Tensor, pm.float32, [3.0, 4.0])
    assert of(number - whole) == (pm.Tensor, pm.float32, [1.0, 0.0])
    assert of(number**x) == (pm.Tensor, pm.float32, [2.0, 4.0])
    assert of(number < x) == (pm.Tensor, pm.bool, [False, False])
    assert of(pm.add(x, number)) == of(x + number)
    assert (number * x.clone().requires_grad_()).requires_grad


@pytest.mark.parametrize("number", [np.int32(2), np.int64(2), np.uint8(2)])
def test_whole_numbers_of_numpy(number):
    whole = pm.tensor([1, 2], dtype=pm.int32)
    assert of(whole * number) == of(number * whole) == (pm.Tensor, pm.int32, [2, 4])


def test_functions_of_numpy():
    x = pm.tensor([1.0, 2.0])
    assert of(np.add(x, x)) == (pm.Tensor, pm.float32, [2.0, 4.0])
    assert of(np.multiply(FLOATS, x)) == (pm.Tensor, pm.float64, [1.0, 4.0])
    assert of(x.__array_wrap__(np.array([True]))) == (pm.Tensor, pm.uint8, [1])
    assert isinstance(np.concatenate([x, FLOATS]), np.ndarray)
    assert pm.Tensor.__array_priority__ == 1000


def zero_dim(value, dtype):
    return pm.tensor(value, dtype=dtype)


@pytest.mark.parametrize(
    "values, dtype",
    [
        ([np.float64(1), 2], pm.float64),
        ([2, np.float64(1)], pm.float64),
        ([np.float32(1), 2], pm.float32),
        ([np.float16(1), 2], pm.float16),
        ([np.float16(1), 2.0], pm.float32),
        ([np.float32(1), np.float64(1)], pm.float64),
        ([np.int32(1), 2], pm.int64),
        ([np.int32(1), np.int32(2)], pm.int32),
        ([np.int32(1), 2.0], pm.float32),
        ([np.int8(1)], pm.int8),
        ([np.uint8(1), np.int8(1)], pm.int16),
        ([np.bool_(True)], pm.bool),
        ([True, np.float64(2)], pm.float64),
        ([[np.float64(1)], [2]], pm.float64),
        ([[np.int32(1)], [np.int64(1)]], pm.int64),
        ([np.array([1.0, 2.0]), [3, 4]], pm.float64),
        ([np.array([1, 2], dtype=np.int32)], pm.int32),
        ([zero_dim(1.0, pm.float64), 2], pm.float64),
        ([2.0, zero_dim(1.0, pm.float64)], pm.float64),
        ([zero_dim(1, pm.int32), 2], pm.int64),
        ([zero_dim(1, pm.int8)], pm.int8),
        ([zero_dim(1, pm.int64), 2.0], pm.float32),
        ([zero_dim(1.0, pm.float16), zero_dim(2.0, pm.float16)], pm.float16),
        ([zero_dim(1.0, pm.bfloat16)], pm.bfloat16),
        ([zero_dim(True, pm.bool)], pm.bool),
        ([[zero_dim(1.0, pm.float64), 2], [3, 4]], pm.float64),
        ([pm.tensor([1.0]), pm.tensor([2.0])], pm.float32),
        (range(3), pm.int64),
        (np.float64(1), pm.float64),
        (np.int8(1), pm.int8),
        ([], pm.float32),
    ],
)
def test_values_carry_their_dtypes(values, dtype):
    made = pm.tensor(values)
    assert made.dtype == dtype
    assert made.reshape(-1).tolist() == list(flat(values))


def flat(value):
    if isinstance(value, (list, range, np.ndarray)):
        for item in value:
            yield from flat(item)
    else:
        yield value.item() if isinstance(value, (pm.Tensor, np.generic)) else value


def test_values_keep_their_bits():
    assert pm.tensor([np.int64(2**53 + 1)]).tolist() == [2**53 + 1]
    assert pm.tensor([np.float64(0.1), 0.1]).tolist() == [0.1, 0.1]
    assert not pm.tensor([pm.tensor(1.0, requires_grad=True)]).requires_grad
    with pytest.raises(ValueError, match="only one of one element"):
        pm.tensor([pm.ones(2), pm.ones(2)])
    for refused in ([np.complex64(1)], [np.longdouble(1)], "a", {}, [None]):
        with pytest.raises((TypeError, RuntimeError)):
            pm.tensor(refused)


@pytest.mark.parametrize("tensor", [pm.tensor(3), pm.tensor([3]), pm.tensor([[3]]), pm.tensor(3, dtype=pm.uint8)])
def test_one_whole_number_is_an_index(tensor):
    assert tensor.__index__() == 3 and operator.index(tensor) == 3
    assert "abcde"[tensor] == "d" and len(range(tensor)) == 3 and hex(tensor) == "0x3"
    if tensor.dim() == 0:
        assert pm.zeros(tensor).shape == pm.zeros([tensor]).shape == (3,)
    assert pm.Tensor(tensor).tolist() == tensor.tolist()


@pytest.mark.parametrize("tensor", [pm.tensor(3.0), pm.tensor([1, 2]), pm.tensor([], dtype=pm.int64), pm.tensor([])])
def test_what_is_not_one_whole_number_is_no_index(tensor):
    for use in (operator.index, range, "abc".__getitem__):
        with pytest.raises(TypeError):
            use(tensor)
    with pytest.raises(TypeError):
        tensor * [1, 2]
    assert pm.tensor(True).__index__() == 1


def read_only(array):
    array.flags.writeable = False
    return array


@pytest.mark.filterwarnings("ignore:The given NumPy array is not writable")
def test_numbers_and_arrays_without_dimensions_keep_their_memory():
    kept = [pm.from_numpy(read_only(np.array(3.5))), pm.tensor(np.float64(2)), pm.as_tensor(np.float32(7))]
    others = [np.array(float(k)) for k in range(500)]
    assert [x.item() for x in kept] == [3.5, 2.0, 7.0]
    for x in kept:
        x.fill_(99.0)
    assert [float(x) for x in others] == list(range(500)), "nobody else's memory was written"


@pytest.mark.filterwarnings("ignore:The given NumPy array is not writable")
def test_a_copy_of_what_is_read_only_has_the_order_of_its_dimensions():
    array = np.arange(6.0).reshape(2, 3)
    turned = pm.from_numpy(read_only(array.T.view()))
    assert (turned.stride(), turned.tolist()) == ((1, 3), array.T.tolist())
    repeated = pm.from_numpy(np.broadcast_to(np.arange(2.0), (3, 2)))
    assert (repeated.stride(), repeated.tolist()) == ((0, 1), [[0.0, 1.0]] * 3)
    with pytest.raises(ValueError, match="a stride of -24 bytes"):
        pm.from_numpy(read_only(array[::-1]))


class Holder:
    """An object with an array's interface, whose other attributes say what they like."""

    dtype, shape, strides = np.dtype("float64"), (1000,), (8,)

    def __init__(self, array):
        self.array = array

    @property
    def __array_interface__(self):
        return self.array.__array_interface__


@pytest.mark.filterwarnings("ignore:The given NumPy array is not writable")
def test_an_interface_says_what_the_memory_is_and_other_attributes_do_not():
    holder = Holder(np.ones(3, dtype=np.float32))
    array = holder.array
    shared = pm.from_numpy(holder)
    del holder
    gc.collect()
    assert (shared.dtype, shared.tolist()) == (pm.float32, [1.0] * 3)
    shared[0] = 5.0
    assert array.tolist() == [5.0, 1.0, 1.0]
    for make in (pm.tensor, pm.as_tensor, pm.asarray):
        assert make(Holder(array)).shape == (3,)
    frozen = pm.from_numpy(Holder(read_only(np.arange(2.0))))
    assert frozen.tolist() == [0.0, 1.0]
    with pytest.raises(TypeError, match="object is not a dtype"):
        pm.from_numpy(Holder(np.array([None])))
