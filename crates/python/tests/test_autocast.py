"""Mixed precision from Python: PyTorch 2.15's arguments, state and dtypes."""

import subprocess
import sys
import threading

import pytest

import plimsoll as pm

X = pm.ones(2, 2)


def product():
    return (X @ X).dtype


def inside(work, *args, **kwargs):
    with pm.autocast(*args, **kwargs):
        return work()


def test_products_are_in_the_lower_precision():
    assert inside(product, "cpu") == pm.bfloat16
    assert inside(product, "cpu", pm.float16) == inside(product, device_type="cpu", dtype=pm.float16) == pm.float16
    assert inside(product, "cpu", pm.bfloat16, True, False) == pm.bfloat16
    assert inside(product, "cpu", enabled=False) == pm.float32
    assert inside(lambda: (X + X).dtype, "cpu") == pm.float32
    assert product() == pm.float32


@pytest.mark.parametrize("dtype", [pm.float32, pm.float64])
def test_another_dtype_switches_it_off(dtype):
    with pytest.warns(UserWarning, match="bfloat16"):
        assert inside(product, "cpu", dtype) == pm.float32


def test_regions_nest():
    def nested(*args, **kwargs):
        return inside(lambda: (inside(product, "cpu", *args, **kwargs), product()), "cpu")

    assert nested(enabled=False) == (pm.float32, pm.bfloat16)
    assert nested(pm.float16) == (pm.float16, pm.bfloat16)
    one = pm.autocast("cpu")
    with one as entered:
        assert entered is one
        with one:
            assert product() == pm.bfloat16
        assert product() == pm.bfloat16
    assert product() == pm.float32
    with pytest.raises(KeyError), pm.autocast("cpu"):
        raise KeyError
    assert not pm.is_autocast_enabled("cpu")


def test_as_a_decorator():
    @pm.autocast(device_type="cpu")
    def compute(add, *, more=0):
        """Computes."""
        return product(), add + more

    assert compute(1, more=2) == (pm.bfloat16, 3)
    assert (compute.__name__, compute.__doc__) == ("compute", "Computes.")
    assert pm.amp.autocast is pm.autocast


def test_the_state_of_the_thread():
    def state():
        kinds = [pm.is_autocast_enabled(), pm.is_autocast_enabled("cpu"), pm.is_autocast_enabled("cuda")]
        return kinds, pm.get_autocast_dtype("cpu"), pm.get_autocast_dtype("cuda"), pm.is_autocast_cache_enabled()

    plain = ([False, False, False], pm.bfloat16, pm.float16, True)
    assert state() == plain
    assert inside(state, "cpu", cache_enabled=False) == ([False, True, False], pm.bfloat16, pm.float16, False)
    there = []
    with pm.autocast("cpu"):
        thread = threading.Thread(target=lambda: there.append(state()))
        thread.start()
        thread.join()
    assert there == [plain] and state() == plain


def test_setting_the_state():
    pm.set_autocast_enabled("cpu", True)
    try:
        assert product() == pm.bfloat16
        pm.set_autocast_dtype("cpu", pm.float16)
        assert product() == inside(product, "cpu") == pm.float16
        pm.set_autocast_cache_enabled(False)
        assert not pm.is_autocast_cache_enabled()
    finally:
        pm.set_autocast_enabled("cpu", False)
        pm.set_autocast_dtype("cpu", pm.bfloat16)
        pm.set_autocast_cache_enabled(True)
    assert product() == pm.float32


def test_a_weight_is_cast_once_and_gets_its_gradient():
    weight = pm.ones(2, 2, requires_grad=True)
    with pm.autocast("cpu"):
        first = weight @ weight
        with pm.no_grad():
            weight.zero_()
        assert (weight @ weight).float().sum().item() == first.float().sum().item() == 8
        pm.clear_autocast_cache()
        assert (weight @ weight).float().sum().item() == 0
    first.sum().backward()
    assert (first.dtype, weight.grad.dtype) == (pm.bfloat16, pm.float32)


def test_what_is_no_device():
    with pytest.raises(ValueError):
        pm.autocast(3)
    with pytest.raises(ValueError):
        pm.autocast(pm.device("cpu"))
    with pytest.raises(TypeError):
        pm.autocast()
    for use in (pm.autocast, pm.is_autocast_enabled, pm.amp.is_autocast_available):
        with pytest.raises(RuntimeError):
            use("foo")
    assert pm.amp.is_autocast_available("cpu")


@pytest.mark.parametrize("sizes", [(4, 8), (8,), (2, 3, 8)])
@pytest.mark.parametrize("dtype", [pm.bfloat16, pm.float16])
def test_a_linear_layer_with_a_bias(dtype, sizes):
    pm.manual_seed(0)
    layer = pm.nn.Linear(8, 6)
    x = pm.randn(sizes)
    with pm.autocast("cpu", dtype):
        y = layer(x)
    assert (y.dtype, y.shape) == (dtype, (*sizes[:-1], 6))
    # One rounding, of the sum: as in halves throughout.
    assert y.tolist() == layer.to(dtype)(x.to(dtype)).tolist()
    wide = x.to(dtype).float() @ layer.weight.float().t() + layer.bias.float()
    assert y.tolist() == wide.to(dtype).tolist()


WITHOUT_CUDA = """
import warnings
import plimsoll as pm

def state():
    kinds = [pm.is_autocast_enabled(), pm.is_autocast_enabled("cpu"), pm.is_autocast_enabled("cuda")]
    return kinds, pm.get_autocast_dtype("cpu"), pm.get_autocast_dtype("cuda")

with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    with pm.autocast("cpu"), pm.autocast("cuda", pm.bfloat16):
        assert state() == ([False, True, False], pm.bfloat16, pm.bfloat16), state()
    pm.autocast("cuda", enabled=False)
assert [str(one.message) for one in said] == ["CUDA is not available or torch_xla is imported. Disabling autocast."]
warnings.simplefilter("error")
gpu = pm.stand_in()
x = pm.ones(2, 2)
with pm.autocast("cuda", pm.bfloat16):
    assert state() == ([True, False, True], pm.bfloat16, pm.bfloat16), state()
    assert (x @ x).dtype is pm.float32
    assert (x.to(gpu) @ x.to(gpu)).dtype is pm.bfloat16
print("ok")
"""


def test_without_cuda_its_is_off_unless_a_device_stands_in():
    if pm.cuda.device_count():
        pytest.skip("this machine has a GPU")
    # In a process of its own: a stand-in that another test opened stays open.
    done = subprocess.run([sys.executable, "-c", WITHOUT_CUDA], capture_output=True, text=True)
    assert done.stdout == "ok\n", done.stderr
