"""Calls as older programs write them: numbers before tensors, numbers in the place of tensors, and what is said of them."""

import subprocess
import sys

import plimsoll as pm
import pytest


@pytest.mark.filterwarnings("ignore:This overload of")
def test_numbers_before_tensors():
    x, a, b = pm.tensor([1.0, 2.0]), pm.tensor([3.0, 5.0]), pm.tensor([2.0, 4.0])
    assert pm.add(x, 2, a).tolist() == x.add(2, a).tolist() == [7.0, 12.0]
    assert pm.sub(x, 2, a).tolist() == x.sub(2, a).tolist() == [-5.0, -8.0]
    assert pm.addcmul(x, 0.5, a, b).tolist() == x.addcmul(0.5, a, b).tolist() == [4.0, 12.0]
    assert x.clone().addcdiv_(-2, a, b).tolist() == [-2.0, -0.5]
    moment = pm.ones(2)
    assert moment.mul_(0.5).add_(0.25, b) is moment and moment.tolist() == [1.0, 1.5]
    out = pm.empty(2)
    assert pm.add(x, 3, a, out=out) is out and out.tolist() == [10.0, 17.0]


@pytest.mark.filterwarnings("ignore:This overload of")
def test_weights_before_products():
    m, a, b = pm.tensor([[1.0]]), pm.tensor([[2.0]]), pm.tensor([[5.0]])
    assert pm.addmm(2, m, 3, a, b).item() == m.addmm(2, 3, a, b).item() == 32.0
    assert pm.addmm(2, m, a, b).item() == m.addmm(2, a, b).item() == 12.0
    assert m.clone().addmm_(2, a, b).item() == 12.0
    assert pm.addmv(2, m[0], 3, a, b[0]).item() == 32.0
    assert pm.addr(2, m, 3, a[0], b[0]).item() == 32.0
    assert pm.addbmm(2, m, 3, a[None], b[None]).item() == pm.baddbmm(2, m[None], 3, a[None], b[None]).item() == 32.0
    for call in (lambda: m.addmm(2), lambda: m.addmm(a, 2, b), lambda: m.add(2, a, alpha=3), lambda: m.addcmul(a, 2)):
        with pytest.raises(TypeError):
            call()


def test_they_are_told_once():
    program = """
import warnings
import plimsoll as pm
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    for _ in range(2):
        pm.ones(1).add_(2, pm.ones(1))
        pm.meshgrid(pm.ones(1), pm.ones(1))
        pm.meshgrid(pm.ones(1), pm.ones(1), indexing="ij")
        float(pm.ones(1, requires_grad=True))
        pm.ones(1, requires_grad=True).item(), float(pm.ones(1))
print(*(str(each.message).partition(":")[0].partition(" with ")[0] for each in seen), sep="|")
"""
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.strip()
    assert said.split("|") == ["This overload of add_ is deprecated", "torch.meshgrid", "Converting a tensor"]


def test_two_numbers():
    assert pm.add(1, 2).tolist() == 3 and pm.add(1, 2).dtype == pm.int64
    assert pm.add(1, 2.5).dtype == pm.mul(2.0, True).dtype == pm.div(1, 2).dtype == pm.float32
    assert (pm.add(True, True).dtype, pm.sub(1, 2).item(), pm.add(1, 2, alpha=3).item()) == (pm.bool, -1, 7)
    assert (pm.floor_divide(7, 2).item(), pm.div(7, 2, rounding_mode="floor").item(), pm.true_divide(1, 4).item()) == (3, 3, 0.25)
    with pytest.raises(TypeError):
        pm.maximum(1, 2)


def test_reversed():
    assert [x.item() for x in reversed(pm.arange(3))] == [2, 1, 0]
    assert reversed(pm.tensor([[1, 2], [3, 4]])).tolist() == [[3, 4], [1, 2]]
    assert reversed(pm.tensor(3)).item() == 3


def test_results_with_names_print_as_pytorchs():
    assert repr(pm.max(pm.tensor([1.0, 2.0]), 0)) == "plimsoll.return_types.max(\nvalues=tensor(2.),\nindices=tensor(1))"
    values, indices = pm.sort(pm.tensor([2, 1]))
    assert (values.tolist(), indices.tolist()) == ([1, 2], [1, 0])


def test_an_index_without_elements_has_any_shape():
    x, none = pm.tensor([[1.0, 2.0], [3.0, 4.0]]), pm.empty(0, dtype=pm.int64)
    wide = pm.empty(0, 3, dtype=pm.int64)
    for index in (none, wide):
        assert x.scatter(0, index, 9.0).tolist() == x.scatter(0, index, pm.ones(1)).tolist() == x.tolist()
        assert x.scatter_add(0, index, pm.ones(1)).tolist() == x.tolist()
        assert x.scatter_reduce(0, index, pm.ones(2), "mean", include_self=False).tolist() == x.tolist()
        assert x.clone().scatter_(1, index, 9.0).tolist() == x.tolist()
        assert x.gather(0, index).shape == index.shape
    leaf = x.clone().requires_grad_()
    leaf.scatter(0, none, 2.0).sum().backward()
    assert leaf.grad.tolist() == [[1.0, 1.0], [1.0, 1.0]]


def test_a_second_ellipsis_is_what_is_left():
    x = pm.arange(6).reshape(2, 3)
    assert x[..., ...].tolist() == x[..., ..., :].tolist() == x.tolist()
    assert x[..., 0, ...].tolist() == [0, 3] and x[0, ..., ...].tolist() == [0, 1, 2]
    assert x[..., None, ...].shape == (2, 3, 1)
    assert x[..., pm.tensor([2, 0]), ...].tolist() == [[2, 0], [5, 3]]
    assert pm.tensor(7)[..., ...].item() == 7
    x[..., 0, ...] = 9
    assert x.tolist() == [[9, 1, 2], [9, 4, 5]]
    for index in ((..., ..., 0), (..., ..., pm.tensor([0]))):
        with pytest.raises(IndexError):
            x[index]


def test_sinc_where_squares_are_nothing():
    x = pm.tensor([0.0, pm.finfo(pm.float64).tiny, 1.0], dtype=pm.float64, requires_grad=True)
    pm.sinc(x).sum().backward()
    assert x.grad.tolist() == [0.0, 0.0, -1.0]


@pytest.mark.parametrize("dtype", [pm.float16, pm.bfloat16])
def test_halves_are_compared_with_halves(dtype):
    edge = pm.tensor([0.3, -0.3, 0.5], dtype=dtype)
    own = edge[0].item()
    assert pm.nn.functional.hardshrink(edge, 0.3).tolist() == [0.0, 0.0, 0.5]
    assert pm.nn.functional.threshold(edge, 0.3, 9.0).tolist() == [9.0, 9.0, 0.5]
    assert pm.nn.functional.softshrink(edge, 0.3).tolist() == [0.0, 0.0, pm.tensor(0.5 - own, dtype=dtype).item()]


def test_pools_of_no_channels_and_to_nothing():
    pool = pm.nn.functional
    assert pool.adaptive_avg_pool1d(pm.ones(0, 10), 5).shape == (0, 5)
    assert pool.adaptive_avg_pool2d(pm.ones(1, 0, 4, 4), 2).shape == (1, 0, 2, 2)
    assert pool.fractional_max_pool2d(pm.ones(1, 2, 9, 9), 2, output_size=(0, 1)).shape == (1, 2, 0, 1)
    for refused in (pool.adaptive_avg_pool3d, pool.adaptive_max_pool3d):
        with pytest.raises(RuntimeError):
            refused(pm.ones(1, 0, 4, 4, 4), 2)
    with pytest.raises(RuntimeError):
        pool.adaptive_avg_pool1d(pm.ones(1, 2, 0), 2)


def test_no_elements_have_no_address():
    assert pm.empty(0).data_ptr() == pm.ones(3)[3:].data_ptr() == 0
    assert not pm.empty(0).is_set_to(pm.empty(0))
    x = pm.ones(2)
    assert x.is_set_to(x[:]) and not x.is_set_to(x.clone())
    whole = pm.empty(100, dtype=pm.int64).random_(-(2**63), 5)
    assert whole.max().item() < 5 and whole.min().item() < 0
