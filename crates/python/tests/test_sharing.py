"""Memory shared with NumPy and, through DLPack, with others: same bytes, counted, alive as long as somebody needs them."""

import array
import gc
import weakref

import numpy as np
import pytest

import plimsoll as pm

DTYPES = ["bool", "uint8", "int32", "int64", "float16", "float32", "float64"]


def external():
    return pm.memory_external()


@pytest.mark.parametrize("name", DTYPES)
def test_an_array_becomes_a_tensor_over_its_memory(name):
    before = external()
    array = np.arange(12).reshape(3, 4).astype(name)
    tensor = pm.from_numpy(array.T)
    assert (tensor.shape, tensor.stride()) == ((4, 3), (1, 4))
    assert tensor.data_ptr() == array.__array_interface__["data"][0]
    assert external() - before == array.nbytes
    array[2, 1] = 1
    assert tensor[1, 2].item() == 1
    tensor.zero_()
    assert not array.any()
    del tensor
    assert external() == before


@pytest.mark.parametrize("name", DTYPES)
def test_a_tensor_becomes_an_array_over_its_memory(name):
    tensor = pm.arange(12).to(getattr(pm, name)).reshape(3, 4).t()[1:]
    array = tensor.numpy()
    assert (array.dtype.name, array.shape) == (name, (3, 3))
    assert array.__array_interface__["data"][0] == tensor.data_ptr()
    expected = np.arange(12).astype(name).reshape(3, 4).T[1:]
    np.testing.assert_array_equal(array, expected)
    array[0, 0] = 0
    assert tensor[0, 0].item() == 0


def test_an_array_keeps_the_memory_of_its_tensor():
    device = pm.private_cpu()
    array = pm.ones(1000, device=device).numpy()
    assert pm.memory_allocated(device) == 4096
    assert array.sum() == 1000
    del array
    gc.collect()
    assert pm.memory_allocated(device) == 0


def test_a_tensor_keeps_its_array():
    class Array(np.ndarray):
        pass

    array = np.ones(8).view(Array)
    gone = weakref.ref(array)
    view = pm.from_numpy(array)[2:4]
    del array
    gc.collect()
    assert gone() is not None and view.tolist() == [1.0, 1.0]
    del view
    gc.collect()
    assert gone() is None


def test_empty_and_zero_dimensional():
    assert pm.from_numpy(np.empty((0, 3))).shape == (0, 3)
    assert pm.zeros(0, 3).numpy().shape == (0, 3)
    scalar = np.array(2.5)
    tensor = pm.from_numpy(scalar)
    scalar[()] = 4.5
    assert (tensor.shape, tensor.item(), tensor.numpy().item()) == ((), 4.5, 4.5)


@pytest.mark.filterwarnings("ignore:The given (NumPy array|buffer) is not writable")
def test_what_may_not_be_written_is_copied():
    frozen = np.arange(3.0)
    frozen.flags.writeable = False
    for copy in (pm.from_numpy, pm.as_tensor, pm.asarray):
        made = copy(frozen)
        made.add_(1)
        assert (made.tolist(), frozen.tolist()) == ([1.0, 2.0, 3.0], [0.0, 1.0, 2.0])
    assert pm.from_numpy(np.broadcast_to(np.ones(1), (3,))).tolist() == [1.0] * 3
    assert pm.frombuffer(b"12", dtype=pm.uint8).add_(1).tolist() == [50, 51]


def test_buffers_and_capsules_as_arrays():
    numbers = array.array("i", [1, 2])
    made = pm.asarray(numbers)
    made[0] = 9
    assert (made.dtype, numbers.tolist()) == (pm.int32, [9, 2])
    assert pm.asarray(array.array("d", [0.5])).dtype == pm.float64 and pm.asarray(bytearray(b"12")).tolist() == [49, 50]
    # With a dtype the bytes are taken as its own.
    assert pm.asarray(bytearray(b"1234"), dtype=pm.int16).tolist() == [12849, 13363]
    x = pm.ones(2)
    assert pm.asarray(pm.utils.dlpack.to_dlpack(x)).data_ptr() == x.data_ptr()
    leaf = pm.ones(2, requires_grad=True)
    assert pm.asarray(leaf) is leaf and not pm.asarray(leaf, requires_grad=False).requires_grad


def test_what_makes_no_tensor_is_told_in_pytorchs_words():
    class Counted:
        def __len__(self):
            return 2

        def __getitem__(self, at):
            return [5, 6][at]

    assert pm.tensor(Counted()).tolist() == [5, 6]
    for given, kind, words in (
        (None, RuntimeError, "Could not infer dtype of NoneType"),
        ([object()], RuntimeError, "Could not infer dtype of object"),
        ({1: 2}, RuntimeError, "Could not infer dtype of dict"),
        ("ab", TypeError, "invalid data type 'str'"),
        (["a"], ValueError, "too many dimensions 'str'"),
        ([1, "a"], TypeError, "invalid data type 'str'"),
        ([[1, 2], [3]], ValueError, r"expected sequence of length 2 at dim 1 \(got 1\)"),
    ):
        with pytest.raises(kind, match=words):
            pm.tensor(given)


def test_what_cannot_be_shared_is_refused():
    frozen = np.ones(3)
    frozen.flags.writeable = False
    assert pm.tensor(frozen).tolist() == [1.0] * 3
    with pytest.raises(ValueError, match="a stride of -8 bytes"):
        pm.from_numpy(np.ones(3)[::-1])
    assert pm.tensor(np.arange(3.0)[::-1]).tolist() == [2.0, 1.0, 0.0]
    with pytest.raises(ValueError, match="foreign order"):
        pm.from_numpy(np.ones(3, dtype=">f4"))
    with pytest.raises(TypeError, match="complex128"):
        pm.from_numpy(np.ones(3, dtype=complex))
    with pytest.raises(TypeError, match="bfloat16"):
        pm.ones(3, dtype=pm.bfloat16).numpy()
    with pytest.raises(RuntimeError, match="that requires grad"):
        pm.ones(3, requires_grad=True).numpy()
    assert pm.ones(3, requires_grad=True).numpy(force=True).tolist() == [1.0] * 3
    with pytest.raises(RuntimeError, match="only accounts for memory"):
        pm.zeros(3, device=pm.dry("cpu")).numpy()


@pytest.mark.parametrize("array", [np.ones(3), np.ones((2, 3)).T, np.ones(3)[::-1]])
def test_a_copy_of_an_array_is_row_major_and_lies_where_it_was_asked_for(array):
    device = pm.private_cpu()
    before = external()
    copy = pm.tensor(array, device=device)
    assert (copy.device, copy.is_contiguous()) == (device, True)
    assert pm.memory_allocated(device) == 512
    assert external() == before
    assert pm.tensor(array).data_ptr() != array.__array_interface__["data"][0]
    np.testing.assert_array_equal(copy.numpy(), array)


def test_conversion_by_numpy_copies_only_if_it_must():
    x = pm.ones(3)
    assert np.asarray(x).__array_interface__["data"][0] == x.data_ptr()
    assert np.asarray(x, dtype="float64").dtype == np.float64
    assert np.array(x).__array_interface__["data"][0] != x.data_ptr()


@pytest.mark.parametrize("name", DTYPES)
def test_dlpack_both_ways(name):
    x = pm.arange(6).to(getattr(pm, name)).reshape(2, 3).t()
    array = np.from_dlpack(x)
    assert array.__array_interface__["data"][0] == x.data_ptr()
    np.testing.assert_array_equal(array, np.arange(6).astype(name).reshape(2, 3).T)
    before = external()
    source = np.arange(6).astype(name).reshape(2, 3).T
    y = pm.from_dlpack(source)
    assert (y.shape, y.stride(), y.dtype) == ((3, 2), (1, 3), getattr(pm, name))
    assert y.data_ptr() == source.__array_interface__["data"][0]
    assert external() - before == source.nbytes
    del y
    assert external() == before


def test_dlpack_from_ourselves_shares_and_frees():
    device = pm.private_cpu()
    x = pm.ones(100, dtype=pm.bfloat16, device=device)
    y = pm.from_dlpack(x)
    copy = pm.from_dlpack(x.__dlpack__(copy=True))
    x.zero_()
    assert (y.float().sum().item(), copy.float().sum().item()) == (0.0, 100.0)
    old = pm.from_dlpack(x.__dlpack__())
    assert old.data_ptr() == x.data_ptr()
    unused = x.__dlpack__(max_version=(1, 0))
    del x, y, copy, old, unused
    gc.collect()
    assert pm.memory_allocated(device) == 0


def test_a_capsule_is_used_once():
    x = pm.ones(2)
    capsule = x.__dlpack__()
    pm.from_dlpack(capsule)
    with pytest.raises(RuntimeError, match="unused capsule"):
        pm.from_dlpack(capsule)
    with pytest.raises(RuntimeError, match="neither an object"):
        pm.from_dlpack(3)
    with pytest.raises(BufferError, match="requires gradients"):
        pm.ones(2, requires_grad=True).__dlpack__()


@pytest.mark.filterwarnings("ignore:The memory given by DLPack is read-only")
def test_what_dlpack_gives_to_be_read_alone_is_copied():
    frozen = np.arange(6.0).reshape(2, 3).T
    frozen.flags.writeable = False
    for copy in (None, True):
        x = pm.from_dlpack(frozen, copy=copy)
        assert x.tolist() == [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]
        x.fill_(9.0)
    assert frozen.tolist() == [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]], "nobody wrote to it"
    before = external()
    assert pm.from_dlpack(frozen).sum().item() == 15.0
    assert external() == before, "the array's memory is given back once it is copied"


def test_an_array_at_an_odd_address_has_no_view_of_larger_elements():
    whole = np.zeros(80, dtype=np.uint8)
    start = 8 - whole.ctypes.data % 8
    for offset in (0, 1):
        shared = pm.from_numpy(whole[start + offset : start + offset + 64])
        if offset == 0:
            assert shared.view(pm.float64).tolist() == [0.0] * 8
            continue
        with pytest.raises(ValueError, match="clone the tensor"):
            shared.view(pm.float64)
        assert shared.clone().view(pm.float64).tolist() == [0.0] * 8
        assert shared.view(pm.bool).tolist() == [False] * 64
