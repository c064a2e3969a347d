"""Arguments as PyTorch takes them: several signatures for a name, by place and by keyword, and errors that name what
does not fit. What is expected was looked up in PyTorch 2.15."""

import plimsoll as pm
import pytest


def test_reductions_take_dimensions_and_a_dtype():
    x = pm.arange(6).float().view(2, 3)
    assert x.sum().item() == 15
    assert x.sum(0).tolist() == [3, 5, 7]
    assert x.sum((0, 1), keepdim=True).tolist() == [[15]]
    assert x.sum(dim=1, dtype=pm.float64).dtype == pm.float64
    assert x.sum(axis=1, keepdims=True).tolist() == [[3], [12]]
    assert pm.sum(x, 1).tolist() == [3, 12]
    assert pm.sum(input=x, dim=[0]).tolist() == [3, 5, 7]
    assert pm.arange(3).mean(dtype=pm.float32).item() == 1
    assert x.any(1).tolist() == [True, True]
    assert (x > 0).all(dim=1, keepdim=True).tolist() == [[False], [True]]
    assert x.argmax(1).tolist() == [2, 2]
    assert x.amax().item() == 5


def test_views_take_sizes_one_by_one_or_as_a_list_or_a_dtype():
    x = pm.arange(6).float()
    assert x.view(2, 3).shape == x.view((2, 3)).shape == x.view([2, -1]).shape == (2, 3)
    assert x.view(pm.int32)[1].item() == 0x3F800000
    assert pm.zeros(1, 2, 1).squeeze().shape == (2,)
    assert pm.zeros(1, 2, 1).squeeze(0).shape == (2, 1)
    assert pm.zeros(1, 2, 1).squeeze((0, 2)).shape == (2,)
    assert pm.zeros(2, 3).permute(1, 0).shape == (3, 2)


def test_second_operands_and_choices():
    x = pm.tensor([-7, 7])
    assert x.div(2, rounding_mode="floor").tolist() == [-4, 3]
    assert pm.div(x, 2, rounding_mode="trunc").tolist() == [-3, 3]
    with pytest.raises(ValueError, match="rounding_mode"):
        x.div(2, rounding_mode="up")
    assert pm.pow(2, pm.tensor([1, 2])).tolist() == [2, 4]
    assert pm.tensor([2.0]).pow(pm.tensor([3.0])).item() == 8
    assert pm.add(x, x, alpha=2).tolist() == [-21, 21]
    y = pm.tensor([1.0]).gelu(approximate="tanh").item()
    assert abs(y - 0.84119) < 1e-5


def test_out_is_for_functions_and_takes_what_the_result_casts_to():
    x = pm.tensor([1.0, 2.0])
    out = pm.zeros(2, dtype=pm.float64)
    assert pm.add(x, 1, out=out) is out and out.tolist() == [2.0, 3.0]
    with pytest.raises(TypeError):
        x.add(1, out=out)
    with pytest.raises(TypeError, match="cannot be stored"):
        pm.add(x, 1, out=pm.zeros(2, dtype=pm.int64))


def test_several_results_have_names():
    values, indices = pm.tensor([3.0, 1.0, 2.0]).sort(descending=True, stable=True)
    assert (values.tolist(), indices.tolist()) == ([3, 2, 1], [0, 2, 1])
    assert pm.tensor([2.0, 1.0]).sort().indices.tolist() == [1, 0]


def test_constructors_take_what_pytorchs_take():
    x = pm.zeros(2, 3, dtype=pm.float64)
    assert pm.ones_like(x, dtype=pm.int64).dtype == pm.int64
    assert pm.zeros_like(x, requires_grad=True).requires_grad
    assert pm.eye(2, 3).tolist() == [[1, 0, 0], [0, 1, 0]]
    assert pm.randint(3, (4,)).shape == pm.randint(1, 3, (4,)).shape == (4,)
    assert pm.randint(high=3, size=(4,)).shape == pm.randint(1, high=3, size=(4,)).shape == (4,)
    assert x.to(pm.float64) is x and x.to(pm.float64, copy=True) is not x
    assert x.to(pm.ones(1)).dtype == pm.float32


def test_constructors_match_pytorchs_signatures():
    assert pm.zeros(size=(2, 3)).shape == pm.zeros((2, 3)).shape == pm.zeros(2, pm.tensor(3)).shape == (2, 3)
    assert pm.zeros(()).shape == () and pm.full((), 1).item() == 1
    assert pm.arange(pm.tensor(3)).tolist() == [0, 1, 2]
    assert pm.arange(start=1, end=5, step=2).tolist() == pm.arange(1, 5, 2).tolist() == [1, 3]
    for wrong in (
        lambda: pm.zeros(),
        lambda: pm.zeros(2.0),
        lambda: pm.zeros(True),
        lambda: pm.zeros(2, dtype=3),
        lambda: pm.zeros(2, requires_grad=1),
        lambda: pm.zeros(2, generator=None),
        lambda: pm.zeros_like([1]),
        lambda: pm.full(2, 3),
        lambda: pm.randint(3, 2),
        lambda: pm.eye(2.0),
        lambda: pm.arange(),
        lambda: pm.arange(5, step=2),
        lambda: pm.arange(1, 2, 3, 4),
    ):
        with pytest.raises(TypeError):
            wrong()
    with pytest.raises(RuntimeError, match="tpu"):
        pm.zeros(2, device="tpu")


def test_positions_and_ranges():
    x = pm.tensor([[1, 0], [1, 1]])
    assert [place.tolist() for place in x.nonzero(as_tuple=True)] == [[0, 1, 1], [0, 0, 1]]
    assert pm.nonzero(x, as_tuple=False).tolist() == x.nonzero().tolist() == [[0, 0], [1, 0], [1, 1]]
    assert pm.arange(0, end=3).tolist() == pm.arange(start=0, end=3).tolist() == pm.arange(3).tolist() == [0, 1, 2]
    assert pm.arange(-0.9, 2.1, 2.0, dtype=pm.int64).tolist() == [0, 2]
    one, first = pm.tensor(5.0), pm.tensor([0])
    assert one.gather(0, first).tolist() == [5.0]
    assert pm.tensor([5.0]).gather(0, pm.tensor(0)).item() == 5.0
    assert x.gather(0, pm.zeros(0, 2, dtype=pm.uint8)).shape == (0, 2)
    assert pm.zeros(1, 1).squeeze(()).shape == (1, 1)


def test_a_dry_gpu_is_a_device():
    peak = pm.zeros(1 << 20, device="dry:h200")
    assert peak.device.type == "cuda"


def test_what_does_not_fit_is_named():
    x = pm.ones(2)
    with pytest.raises(TypeError, match="'dim' must be"):
        x.softmax("last")
    with pytest.raises(TypeError, match="no argument 'dims'"):
        x.sum(dims=0)
    with pytest.raises(TypeError, match="'other' is missing"):
        pm.add(x)
    with pytest.raises(TypeError, match="fit none of its signatures"):
        x.view("no")
    with pytest.raises(TypeError, match="was given twice"):
        x.softmax(0, dim=0)


def test_unbind_of_a_tensor_without_dimensions():
    with pytest.raises(IndexError, match="Dimension specified as 0 but tensor has no dimensions"):
        pm.tensor(1).unbind()
    with pytest.raises(IndexError, match="out of range"):
        pm.tensor(1).unbind(2)
