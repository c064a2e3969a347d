"""Settings and names that PyTorch's programs use around their tensors: devices, defaults, printing, sizes, streams, storages,
comparisons. Expected values are PyTorch 2.15's."""

import pickle
import subprocess
import sys
import warnings

import plimsoll as pm
import pytest
from plimsoll import testing


@pytest.fixture(autouse=True)
def put_back():
    yield
    pm.set_default_dtype(pm.float32)
    pm.set_default_device(None)
    pm.set_printoptions(profile="default")


# ---- devices ----


def test_a_device_is_a_name_until_it_is_used():
    cuda = pm.device("cuda")
    assert (cuda.type, cuda.index, str(cuda), repr(cuda)) == ("cuda", None, "cuda", "device(type='cuda')")
    first = pm.device("cuda", 0)
    assert first == pm.device("cuda:0") == pm.device(0) and first != cuda and first.index == 0
    assert repr(first) == "device(type='cuda', index=0)" and hash(first) == hash(pm.device("cuda:0"))
    assert pm.device("cpu") != pm.device("cpu:0") and pm.device(pm.device("cpu")) == pm.device("cpu")
    assert pickle.loads(pickle.dumps(first)) == first
    with pytest.raises(RuntimeError, match="index was passed explicitly"):
        pm.device("cuda:0", 1)
    with pytest.raises(RuntimeError, match="abacus"):
        pm.device("abacus")


def test_tensors_say_the_host_without_a_number():
    assert pm.zeros(1).device == pm.device("cpu") and pm.zeros(1).device.index is None
    assert pm.zeros(1).is_cpu and not pm.zeros(1).is_cuda and pm.zeros(1).get_device() == -1


def test_the_default_device_holds_for_what_names_none():
    own = pm.private_cpu()
    pm.set_default_device(own)
    assert pm.get_default_device() == own
    made = [pm.zeros(2), pm.tensor([1.0]), pm.randn(2), pm.arange(3), pm.full((2,), 1.0), pm.randperm(3)]
    assert all(x.device == own for x in made)
    assert pm.zeros(1, device="cpu").device == pm.device("cpu")
    assert pm.zeros_like(pm.zeros(1, device="cpu")).device == pm.device("cpu")
    pm.set_default_device(None)
    with own:
        assert pm.nn.Linear(2, 2).weight.device == own
    assert pm.zeros(1).device == pm.device("cpu")


# ---- dtypes and printing ----


def test_the_default_dtype():
    assert pm.get_default_dtype() is pm.float32
    pm.set_default_dtype(pm.float64)
    made = [pm.zeros(2), pm.tensor([1.0]), pm.randn(2), pm.linspace(0, 1, 3), pm.arange(0.0, 1.0), pm.eye(2), pm.Tensor(2)]
    assert all(x.dtype is pm.float64 for x in made)
    assert (pm.tensor([1, 2]) * 0.5).dtype is pm.float64 and pm.tensor([1, 2]).sqrt().dtype is pm.float64
    assert (pm.tensor([1, 2]) / 2).dtype is pm.float64 and repr(pm.ones(1)) == "tensor([1.])"
    assert repr(pm.ones(1, dtype=pm.float32)) == "tensor([1.], dtype=torch.float32)"
    with pytest.raises(TypeError):
        pm.set_default_dtype(pm.int64)
    assert pm.zeros(1, dtype=float).dtype is pm.float64


def test_print_options():
    x = pm.tensor([1.12345, 100.0])
    pm.set_printoptions(precision=2)
    assert str(x) == "tensor([  1.12, 100.00])"
    pm.set_printoptions(sci_mode=True)
    assert str(x) == "tensor([1.12e+00, 1.00e+02])"
    pm.set_printoptions(profile="default")
    assert str(x) == "tensor([  1.1235, 100.0000])"
    pm.set_printoptions(threshold=5)
    assert str(pm.arange(10)) == "tensor([0, 1, 2,  ..., 7, 8, 9])"
    pm.set_printoptions(edgeitems=1)
    assert str(pm.arange(10)) == "tensor([0,  ..., 9])"
    pm.set_printoptions(profile="full")
    assert str(pm.arange(2000)).endswith("1999])")
    with pytest.raises(ValueError):
        pm.set_printoptions(profile="long")


def test_rules_of_dtypes():
    assert pm.promote_types(pm.uint8, pm.int8) is pm.int16 and pm.promote_types(pm.float16, pm.bfloat16) is pm.float32
    assert pm.result_type(pm.tensor([1], dtype=pm.int8), 300) is pm.int8
    assert pm.result_type(pm.tensor([1]), 1.5) is pm.float32 and pm.result_type(1, 2.5) is pm.float32
    assert pm.can_cast(pm.float64, pm.float16) and not pm.can_cast(pm.float32, pm.int64) and not pm.can_cast(pm.int8, pm.bool)


def test_size():
    shape = pm.zeros(2, 3, 4).shape
    assert shape == (2, 3, 4) and isinstance(shape, pm.Size) and isinstance(shape, tuple)
    assert repr(shape) == "plimsoll.Size([2, 3, 4])" and shape.numel() == 24 and pm.zeros(2, 3).size() == pm.Size([2, 3])
    assert isinstance(shape[:2], pm.Size) and isinstance(shape + (1,), pm.Size) and shape[-1] == 4
    assert pickle.loads(pickle.dumps(shape)) == shape


# ---- streams, events, the stand-in as cuda ----


def test_streams_and_events_of_a_stand_in():
    device = pm.stand_in()
    side = pm.Stream(device)
    x = pm.ones(1000, device=device)
    begin, end = pm.Event(enable_timing=True, device=device), pm.Event(enable_timing=True, device=device)
    begin.record()
    with pm.cuda.stream(side):
        side.wait_stream(pm._plimsoll._default_stream(device))
        assert pm._plimsoll._current_stream(device) == side
        y = x * 2
        y.record_stream(side)
    assert pm._plimsoll._current_stream(device) != side
    end.record(side)
    end.synchronize()
    assert end.query() and begin.elapsed_time(end) >= 0 and y.sum().item() == 2000
    with pytest.raises(ValueError, match="enable_timing"):
        pm.Event().elapsed_time(end)


AS_CUDA = """
import plimsoll as pm
assert not pm.cuda.is_available() and pm.cuda.memory_allocated() == 0 and pm.cuda.memory_stats() == {}
device = pm.stand_in(64 << 20, as_cuda=True)
assert str(device) == "cuda:0" and pm.cuda.is_available() and pm.cuda.device_count() == 1
x = pm.zeros(1 << 20, device="cuda")
assert x.is_cuda and x.device == pm.device("cuda:0") and x.cpu().device.type == "cpu" and pm.ones(1).cuda().is_cuda
assert pm.cuda.memory_allocated() == 4 << 20 and pm.cuda.max_memory_reserved("cuda:0") == 22 << 20
assert pm.cuda.mem_get_info()[1] == 64 << 20 and pm.cuda.current_device() == 0
assert pm.cuda.memory_stats()["allocated_bytes.all.current"] == 4 << 20
assert pm.cuda.memory_stats_as_nested_dict()["allocated_bytes"]["all"]["peak"] == (4 << 20) + 512
assert "memory summary, device cuda:0" in pm.cuda.memory_summary()
del x
pm.cuda.synchronize()
assert pm.cuda.memory_reserved() == 22 << 20
pm.cuda.empty_cache()
assert pm.cuda.memory_reserved() == 0
pm.cuda.set_per_process_memory_fraction(0.25)
assert pm.cuda.get_per_process_memory_fraction() == 0.25
try:
    pm.zeros(5 << 20, device="cuda")
    raise AssertionError("it does not fit")
except pm.cuda.OutOfMemoryError:
    pass
pm.reset_memory_settings("cuda")
pm.zeros(5 << 20, device="cuda")
pm.cuda.memory._record_memory_history(max_entries=100)
kept = pm.ones(10, device="cuda")
assert pm.cuda.memory._snapshot()["device_traces"]
try:
    pm.zeros(1, device="cuda:1")
    raise AssertionError("there is one")
except RuntimeError:
    pass
with pm.autocast("cuda"):
    assert (pm.ones(2, 2, device="cuda") @ pm.ones(2, 2, device="cuda")).dtype is pm.float16
print("ok")
"""


def test_a_stand_in_answers_as_cuda():
    if pm.cuda.is_available():
        pytest.skip("this machine has a GPU")
    done = subprocess.run([sys.executable, "-c", AS_CUDA], capture_output=True, text=True)
    assert done.stdout == "ok\n", done.stderr


# ---- storages, comparisons, the rest ----


def test_storage_warns_and_shares():
    x = pm.tensor([1.0, 2.0, 3.0])
    with pytest.warns(UserWarning, match="TypedStorage is deprecated"):
        storage = x[1:].storage()
    assert len(storage) == 3 and storage[0] == 1.0 and storage.data_ptr() == x.data_ptr() and storage.nbytes() == 12
    storage[0] = 5.0
    assert x[0].item() == 5.0 and pm.is_storage(storage) and pm.is_storage(x.untyped_storage())
    assert repr(storage).splitlines()[0] == " 5.0" and repr(storage).endswith("of size 3]")


CLOSE = [
    ([1.0, 2.0], [1.0, 2.0 + 1e-6], None),
    ([1.0, 2.0], [1.0, 2.5], "Mismatched elements: 1 / 2 (50.0%)"),
    ([1, 2], [1, 3], "Tensor-likes are not equal!"),
]


@pytest.mark.parametrize("actual, expected, said", CLOSE)
def test_assert_close(actual, expected, said):
    if said is None:
        return testing.assert_close(pm.tensor(actual), pm.tensor(expected))
    with pytest.raises(AssertionError) as raised:
        testing.assert_close(pm.tensor(actual), pm.tensor(expected))
    assert said in str(raised.value)


def test_assert_close_says_where_and_by_how_much():
    with pytest.raises(AssertionError) as raised:
        testing.assert_close({"a": [1.0, 2.0]}, {"a": [1.0, 2.5]})
    assert str(raised.value) == (
        "Scalars are not close!\n\nExpected 2.5 but got 2.0.\nAbsolute difference: 0.5 (up to 1e-07 allowed)\n"
        "Relative difference: 0.2 (up to 1e-07 allowed)\n\nThe failure occurred for item ['a'][1]"
    )
    with pytest.raises(AssertionError, match="'shape' do not match"):
        testing.assert_close(pm.ones(2), pm.ones(3))
    with pytest.raises(AssertionError, match="'dtype' do not match"):
        testing.assert_close(pm.ones(2), pm.ones(2, dtype=pm.float64))
    with pytest.raises(TypeError, match="No comparison pair"):
        testing.assert_close(pm.ones(2), [1.0, 1.0])
    with pytest.raises(ValueError, match="no atol"):
        testing.assert_close(1.0, 1.0, rtol=1e-3)


def test_compile_gives_its_argument_back_and_says_so_once():
    code = "import plimsoll as pm, warnings; warnings.simplefilter('error'); f = lambda x: x\ntry: pm.compile(f)\nexcept UserWarning: pass\nprint(pm.compile(f) is f, pm.compile(fullgraph=True)(f) is f)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "True True\n"


def test_what_is_not_compiled_is_refused_or_left_alone():
    with pytest.raises(RuntimeError, match="torch.jit.script"):
        pm.jit.script(abs)
    assert pm.jit.ignore(abs) is abs and not pm.jit.is_scripting() and pm.jit.annotate(int, 3) == 3


def test_old_classes_and_functions_in_place():
    x = pm.FloatTensor([1, 2])
    assert x.dtype is pm.float32 and isinstance(x, pm.FloatTensor) and not isinstance(x, pm.LongTensor)
    assert pm.LongTensor(2, 3).shape == (2, 3) and pm.relu_(pm.tensor([-1.0, 1.0])).tolist() == [0.0, 1.0]
    assert x.storage_offset() == 0 and pm.typename(x) == "torch.FloatTensor" and x.new(3).shape == (3,)


def test_windows_vander_range():
    assert pm.hann_window(4).tolist() == pytest.approx([0, 0.5, 1, 0.5], abs=1e-6)
    assert pm.hamming_window(3, periodic=False).tolist() == pytest.approx([0.08, 1, 0.08], abs=1e-6)
    assert pm.vander(pm.tensor([1, 2, 3])).tolist() == [[1, 1, 1], [4, 2, 1], [9, 3, 1]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert pm.range(1, 2, 0.5).tolist() == [1.0, 1.5, 2.0]


def test_threads_precision_and_backends():
    pm.set_float32_matmul_precision("high")
    assert pm.backends.cuda.matmul.allow_tf32 and pm.get_float32_matmul_precision() == "high"
    pm.set_float32_matmul_precision("highest")
    assert not pm.backends.cuda.matmul.allow_tf32 and not pm.backends.mps.is_available()
    with pytest.raises(RuntimeError):
        pm.set_num_interop_threads(0)


def test_memory_settings_of_the_host():
    own = pm.private_cpu()
    pm.set_memory_limit(1 << 20, own)
    pm.reset_memory_settings(own)
    x = pm.zeros(8 << 20, device=own)
    y = pm.zeros(1 << 10, device=own)
    del x, y
    assert pm.empty_cache(own, keep_bytes=2 << 20) == 32 << 20 and pm.memory_reserved(own) == 2 << 20
    assert "by kind" in pm.memory_report(own)
