"""Ends of ranges, views of one element, numbers beside halves, sizes that are too large: answers are PyTorch 2.15's, but where
a test says otherwise."""

import math

import pytest

import plimsoll as pm
import plimsoll.nn.functional as F


def test_views_of_one_element_are_themselves():
    x = pm.zeros(3)
    x[0:1] += 1
    x[None] += 1
    x[:1] *= 2
    assert x.tolist() == [4.0, 1.0, 1.0]


def test_products_in_place_do_not_read_what_they_write():
    # PyTorch computes them, and most of them wrong.
    x, y = pm.ones(3, 3), pm.ones(3, 3)
    for work in (lambda: x.addmm_(x, y), lambda: x.addmm_(y, x), lambda: x[0].addmv_(y, x[0])):
        with pytest.raises(RuntimeError, match="shares memory"):
            work()
    assert x.addmm_(y, y).tolist() == [[4.0] * 3] * 3


@pytest.mark.parametrize("dtype", [pm.float16, pm.bfloat16])
def test_numbers_are_rounded_to_halves_first(dtype):
    x = pm.tensor([0.1], dtype=dtype)
    assert (x == 0.1).tolist() == [True]
    assert (x != 0.1).tolist() == [False]
    assert (x % 0.1).tolist() == [0.0]
    assert (pm.tensor([math.inf], dtype=pm.float16) == 1e10).tolist() == [True]


def test_closeness_of_integers_does_not_wrap():
    a, b = pm.tensor([-1], dtype=pm.int8), pm.tensor([127], dtype=pm.int8)
    assert pm.isclose(a, b).tolist() == [False]
    assert not pm.allclose(pm.tensor([0]), pm.tensor([-(2**63)]))


def test_ldexp_of_tiny_and_large_numbers():
    x = pm.ldexp(pm.tensor([0.0, 1e-40, 1.0, 1e30]), pm.tensor([200, 140, -149, -200]))
    assert x.tolist() == pytest.approx([0.0, 139.38, 1.4013e-45, 6.2230e-31], rel=1e-3)
    assert pm.ldexp(pm.tensor([3]), pm.tensor([2])).tolist() == [12.0]


def test_interpolation_copies_what_keeps_its_size():
    x = pm.arange(4.0).view(1, 1, 2, 2)
    for mode in ("nearest", "bilinear"):
        assert F.interpolate(x, scale_factor=1.3, mode=mode).tolist() == x.tolist()


def test_samples_outside_every_bag_have_no_gradient():
    weights = pm.ones(5, requires_grad=True)
    table, offsets = pm.ones(4, 3), pm.tensor([0, 2, 3])
    indices = pm.tensor([0, 1, 2, 3, 0])
    bags = F.embedding_bag(
        indices, table, offsets, mode="sum", include_last_offset=True, per_sample_weights=weights
    )
    bags.sum().backward()
    # PyTorch counts them to the last bag, whose sum they are not in.
    assert weights.grad.tolist() == [3.0, 3.0, 3.0, 0.0, 0.0]


def test_the_ends_of_integers():
    least = pm.tensor([-(2**63)])
    assert pm.lcm(least, pm.tensor([-1])).shape == (1,)
    with pytest.raises(RuntimeError):
        pm.bincount(pm.tensor([2**63 - 1]))
    assert pm.true_divide(2**31, pm.tensor([2], dtype=pm.int32)).tolist() == [2.0**30]
    assert pm.add(2**31, pm.tensor([2], dtype=pm.int32)).tolist() == [-2147483646]
    assert (1 << pm.tensor([3])).tolist() == [8]
    assert (16 >> pm.tensor([3])).tolist() == [2]


def test_sizes_that_are_too_large_are_errors():
    for work in (
        lambda: pm.linspace(0, 1, 2**61),
        lambda: pm.logspace(0, 1, 2**50),
        lambda: pm.triu_indices(2**33, 2**33),
        lambda: pm.repeat_interleave(pm.tensor([2**62, 2**62])),
        lambda: pm.kron(pm.zeros(1).expand(2**40), pm.zeros(1).expand(2**40)),
    ):
        with pytest.raises(RuntimeError):
            work()
    assert pm.zeros(3).diff(n=10**9).shape == (0,)


def test_sequences_and_triangles():
    assert pm.linspace(0, 1, 5).tolist() == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert pm.linspace(2, 3, 1).tolist() == [2.0]
    assert pm.linspace(0, 1, 0).tolist() == []
    assert pm.linspace(0, 10, 4, dtype=pm.int64).tolist() == [0, 3, 6, 10]
    assert pm.logspace(0, 3, 4).tolist() == [1.0, 10.0, 100.0, 1000.0]
    assert pm.tril_indices(3, 2, -1).tolist() == [[1, 2, 2], [0, 0, 1]]
    assert pm.triu_indices(2, 3, 1).tolist() == [[0, 0, 1], [1, 2, 2]]
    assert pm.tril_indices(3, 2, 5).tolist() == [[0, 0, 1, 1, 2, 2], [0, 1, 0, 1, 0, 1]]
    assert pm.triu_indices(3, 3, -5).shape == (2, 9)
    assert pm.tril_indices(3, 3, -9).shape == (2, 0)
    times = pm.tensor([2, 0, 3])
    assert pm.repeat_interleave(times).tolist() == [0, 0, 2, 2, 2]
    assert pm.repeat_interleave(pm.tensor([5, 6, 7]), times).tolist() == [5, 5, 7, 7, 7]


def test_targets_of_what_has_no_derivative():
    x = pm.ones(2, requires_grad=True)
    out = pm.empty(2, dtype=pm.bool)
    pm.eq(x, x, out=out)
    assert out.tolist() == [True, True]
    with pytest.raises(RuntimeError):
        pm.add(x, x, out=pm.empty(2))


def test_arguments_that_pytorch_takes():
    assert F.avg_pool2d(pm.ones(1, 1, 4, 4), 2, None).shape == (1, 1, 2, 2)
    assert pm.amax(pm.ones(2, 2), None).tolist() == 1.0
    assert pm.cat([pm.empty(0), pm.empty(0)], 1).shape == (0,)
    values, places = pm.topk(pm.tensor(5.0), 0)
    assert (values.item(), places.item()) == (5.0, 0)


def test_arguments_that_pytorch_refuses():
    for work in (
        lambda: pm.full_like(pm.zeros(2, dtype=pm.int8), 1000),
        lambda: pm.randperm(300, dtype=pm.uint8),
        lambda: pm.randperm(5000, dtype=pm.float16),
    ):
        with pytest.raises(RuntimeError):
            work()
    for work in (
        lambda: pm.tensor(1.0).select(0, 0),
        lambda: pm.ones(3)[pm.tensor([1], dtype=pm.int16)],
    ):
        with pytest.raises(IndexError):
            work()


def test_rearranging_takes_no_memory_beside_the_result():
    x = pm.arange(6.0, requires_grad=True)
    y = F.pad(x.flip(0).roll(2).view(1, 6), (2, 3), mode="reflect").repeat(2, 1)
    y.sum().backward()
    rolled = [1.0, 0.0, 5.0, 4.0, 3.0, 2.0]
    padded = [5.0, 0.0, *rolled, 3.0, 4.0, 5.0]
    assert y.tolist() == [padded, padded]
    assert x.grad.tolist() == [4.0, 2.0, 2.0, 4.0, 4.0, 6.0]


def test_numbers_beyond_what_their_dtype_holds():
    infinity = float("inf")
    with pytest.raises(OverflowError, match="infinity"):
        int(pm.tensor(infinity))
    with pytest.raises(ValueError, match="NaN"):
        int(pm.tensor(float("nan")))
    assert int(pm.tensor(1e30, dtype=pm.float64)) == int(1e30)
    for convert in (float, int):
        for many in (pm.ones(2), pm.ones(0)):
            with pytest.raises(ValueError, match="only one element tensors"):
                convert(many)
        assert convert(pm.full((1, 1), 3.0)) == 3
    assert pm.polygamma(1, pm.tensor(infinity)).item() == 0.0
    # The square of the distance is infinite, the distance is not.
    far = pm.tensor([1e200, -1e200], dtype=pm.float64)
    assert (far.var().item(), far.std().item()) == (infinity, infinity)
    assert pm.tensor([1e200] * 3, dtype=pm.float64).var().item() == 0.0


def test_a_first_gradient_of_another_precision_is_converted():
    x = pm.ones(2, requires_grad=True)
    (x * 2).backward(pm.ones(2, dtype=pm.float64))
    assert x.grad.dtype == pm.float32 and x.grad.tolist() == [2.0, 2.0]
    (found,) = pm.autograd.grad(x * 3, x, pm.ones(2, dtype=pm.bfloat16))
    assert found.dtype == pm.float32 and found.tolist() == [3.0, 3.0]
def test_numbers_are_printed_as_python_prints_them():
    loss = pm.tensor(2.5, requires_grad=True)
    assert f"{loss:.3f} {loss:>8} {loss}" == "2.500      2.5 2.5"
    assert f"{pm.tensor(7):03d} {pm.tensor(True)}" == "007 True"
    assert f"{pm.ones(2)}" == "tensor([1., 1.])"
    for other in [pm.ones(1), pm.nn.Parameter(pm.tensor(1.0))]:
        with pytest.raises(TypeError, match="unsupported format string"):
            f"{other:.2f}"
    accounted = pm.zeros((), device=pm.dry("cpu"))
    assert "dry(cpu" in f"{accounted}"
    with pytest.raises(RuntimeError, match="no values to read"):
        f"{accounted:.2f}"


def test_the_limits_of_dtypes():
    for dtype, expected in [
        (pm.float32, (32, 2.0**-23, 3.4028234663852886e38, 2.0**-126, 1e-06)),
        (pm.float64, (64, 2.0**-52, 1.7976931348623157e308, 2.2250738585072014e-308, 1e-15)),
        (pm.float16, (16, 2.0**-10, 65504.0, 2.0**-14, 1e-03)),
        (pm.bfloat16, (16, 2.0**-7, 3.3895313892515355e38, 2.0**-126, 1e-02)),
    ]:
        info = pm.finfo(dtype)
        assert (info.bits, info.eps, info.max, info.tiny, info.resolution) == expected
        assert info.min == -info.max and info.smallest_normal == info.tiny
        assert pm.tensor(info.max, dtype=dtype).item() == info.max
    for dtype, least, most in [(pm.uint8, 0, 255), (pm.int8, -128, 127), (pm.int64, -(2**63), 2**63 - 1)]:
        info = pm.iinfo(dtype)
        assert (info.min, info.max) == (least, most)
    assert pm.finfo().dtype == "float32" and pm.iinfo(pm.int16).bits == 16
    assert repr(pm.finfo(pm.float16)) == (
        "finfo(resolution=0.001, min=-65504, max=65504, eps=0.000976562, smallest_normal=6.10352e-05, tiny=6.10352e-05, "
        "dtype=float16)"
    )
    for refused in [lambda: pm.finfo(pm.int32), lambda: pm.iinfo(pm.bool), lambda: pm.iinfo(pm.float32)]:
        with pytest.raises(TypeError, match="dtype"):
            refused()
    assert pm.is_tensor(pm.ones(1)) and not pm.is_tensor(1.0)
    assert pm.numel(pm.ones(2, 3)) == 6 and not pm.is_floating_point(pm.arange(2))
    assert (pm.pi, pm.e, pm.inf) == (math.pi, math.e, math.inf) and math.isnan(pm.nan)


def test_a_dry_device_is_of_the_sort_that_it_imitates():
    assert pm.dry("cpu").type == "cpu" and pm.ones(1, device=pm.dry("cpu")).device.type == "cpu"


def test_whether_an_element_is_there():
    x = pm.ones(2, 2)
    assert 1.0 in x and pm.tensor(1) in x and True in x and 2 not in x and 1j not in x
    assert pm.tensor([0.0, 1.0]) in x
    for stranger in ("a", None, [1]):
        with pytest.raises(RuntimeError, match="only supports Tensor or scalar"):
            stranger in x  # noqa: B015


def test_the_real_part_is_an_attribute():
    x = pm.ones(2)
    assert x.real is x and pm.real(x) is x


def test_sizes_are_whole_numbers():
    assert pm.Size([1, pm.tensor(2), True]) == (1, 2, 1) and type(pm.Size([pm.tensor(2)])[0]) is int
    assert pm.Size(size for size in (3, 4)).numel() == 12 and pm.Size() == ()
    for sizes in ([1.5], ["a"], [None], [pm.tensor(2.0)], "ab", 3):
        with pytest.raises(TypeError):
            pm.Size(sizes)


def test_gradients_to_start_from_are_tensors():
    x = pm.ones(2, requires_grad=True)
    with pytest.raises(TypeError, match="gradients can be either Tensors or None, but got int"):
        pm.autograd.grad([x.sum()], [x], [1])


def test_what_pytorch_warns_of_in_indices_and_transposes():
    x = pm.ones(3, 4)
    with pytest.warns(UserWarning, match="non-tuple sequence"):
        assert x[[[0, 1], [0, 1]]].shape == (2,)
    with pytest.warns(UserWarning, match="dimension other than 2"):
        assert pm.ones(2, 3, 4).T.shape == (4, 3, 2)
    with pytest.warns(UserWarning, match="0-D"):
        assert pm.tensor(1).T.shape == ()
    assert x.T.shape == (4, 3) and x[[0, 1]].shape == (2, 4)
    with pytest.raises(TypeError):
        del x[0]


def test_handles_of_hooks_have_numbers():
    x = pm.ones(2, requires_grad=True)
    one, other = x.register_hook(print), x.register_hook(print)
    assert one.id != other.id
