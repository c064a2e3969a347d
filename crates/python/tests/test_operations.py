"""Values against NumPy, for one operation of every shape, and the forms that Python adds."""

import warnings

import numpy as np
import pytest

import plimsoll as pm

RNG = np.random.default_rng(0)
A = RNG.standard_normal((4, 5)).astype(np.float32)
B = RNG.standard_normal((4, 5)).astype(np.float32)


def check(tensor, expected, tolerance=1e-5):
    expected = np.asarray(expected)
    assert tensor.shape == expected.shape
    np.testing.assert_allclose(tensor.numpy(), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(
    "name, reference",
    [
        ("exp", np.exp),
        ("tanh", np.tanh),
        ("relu", lambda x: np.maximum(x, 0)),
        ("neg", np.negative),
        ("abs", np.abs),
        ("sigmoid", lambda x: 1 / (1 + np.exp(-x))),
    ],
)
def test_unary_as_method_function_in_place_and_out(name, reference):
    x = pm.tensor(A)
    check(getattr(x, name)(), reference(A))
    check(getattr(pm, name)(x), reference(A))
    out = pm.empty(4, 5)
    assert getattr(pm, name)(x, out=out) is out
    check(out, reference(A))
    assert getattr(x, name + "_")() is x
    check(x, reference(A))


def test_operators():
    a, b = pm.tensor(A), pm.from_numpy(B)
    check(a + b, A + B)
    check(1 + a, 1 + A)
    check(a - b, A - B)
    check(2 - a, 2 - A)
    check(a * b, A * B)
    check(a / b, A / B, 1e-4)
    check(1 / a, 1 / A, 1e-4)
    check(-a, -A)
    check(abs(a), abs(A))
    check(a**2, A**2)
    check(a @ b.t(), A @ B.T)
    assert (a < b).dtype == pm.bool
    check(a < b, A < B)
    check(a == a, np.ones((4, 5), bool))
    a += b
    check(a, A + B)
    with pytest.raises(TypeError):
        a + "text"


def test_alpha_and_promotion():
    a = pm.from_numpy(A)
    check(a.add(a, alpha=2), 3 * A)
    check(pm.sub(a, 1, alpha=3), A - 3)
    whole = pm.arange(3)
    assert whole.dtype == pm.int64
    assert (whole + 1.5).dtype == pm.float32
    assert (whole + 1).dtype == pm.int64
    assert (whole + True).dtype == pm.int64
    assert (whole / 2).dtype == pm.float32


def test_reductions():
    a = pm.from_numpy(A)
    check(a.sum(), A.sum())
    check(a.sum(0), A.sum(0))
    check(a.sum(dim=(0, 1), keepdim=True), A.sum((0, 1), keepdims=True))
    check(pm.mean(a, dim=1), A.mean(1))
    check(a.amax(dim=1), A.max(1))
    check(a.argmax(dim=1), A.argmax(1))


def test_into_given_tensors():
    a, b = pm.from_numpy(A), pm.from_numpy(B)
    out = pm.empty(4, 5)
    assert pm.add(a, b, alpha=2, out=out) is out
    check(out, A + 2 * B)
    pm.sub(a, b, alpha=0.5, out=out)
    check(out, A - 0.5 * B)
    row = pm.empty(5)
    assert pm.sum(a, 0, out=row) is row
    check(row, A.sum(0))
    check(pm.mean(a, [0], out=row), A.mean(0))
    check(pm.amax(a, 0, out=row), A.max(0))
    check(pm.argmin(a, 0, out=pm.empty(5, dtype=pm.int64)), A.argmin(0))
    check(pm.stack([a, b], out=pm.empty(2, 4, 5)), np.stack([A, B]))
    values, indices = pm.empty(4, 5), pm.empty(4, 5, dtype=pm.int64)
    both = pm.sort(a, 1, out=(values, indices))
    assert both[0] is values and both[1] is indices
    check(values, np.sort(A, 1))
    check(indices, np.argsort(A, 1, kind="stable"))
    target = pm.empty(4)
    with pytest.warns(UserWarning, match="was resized"):
        pm.sum(a, 0, out=target)
    check(target, A.sum(0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        empty = pm.empty(0)
        check(pm.add(a, b, out=empty), A + B)
    assert tuple(empty.shape) == (4, 5)


def test_resizing():
    x = pm.arange(6)
    view = x[2:]
    x.resize_(2, 2)
    assert x.tolist() == [[0, 1], [2, 3]] and view.tolist() == [2, 3, 4, 5]
    x.resize_((2, 4))
    assert tuple(x.shape) == (2, 4) and x.flatten()[:6].tolist() == [0, 1, 2, 3, 4, 5]
    with pytest.raises(RuntimeError, match="cannot resize variables that require grad"):
        pm.ones(2, requires_grad=True).resize_(3)


def test_errors_are_of_the_classes_that_handlers_name():
    for exact, provoke in [
        (TypeError, lambda: pm.ones(2, dtype=pm.int64).mean()),
        (IndexError, lambda: pm.ones(2).select(0, 5)),
        (ValueError, lambda: pm.full((1,), 300, dtype=pm.uint8)),
    ]:
        for handler in (exact, RuntimeError):
            with pytest.raises(handler):
                provoke()


def test_joins_indices_and_sorting():
    a, b = pm.from_numpy(A), pm.from_numpy(B)
    check(pm.cat([a, b], dim=1), np.concatenate([A, B], 1))
    check(pm.stack([a, b]), np.stack([A, B]))
    values, indices = a.sort(dim=1)
    check(values, np.sort(A, 1))
    check(indices, np.argsort(A, 1, kind="stable"))
    index = pm.tensor([[0, 1], [2, 3]])
    check(a.gather(1, index), np.take_along_axis(A[:2], np.array([[0, 1], [2, 3]]), 1))
    check(pm.where(a > 0, a, 0.0), np.where(A > 0, A, 0))
    check((a > 0).nonzero(), np.argwhere(A > 0))


def test_softmax_and_layer_norm():
    a = pm.from_numpy(A)
    e = np.exp(A - A.max(1, keepdims=True))
    check(a.softmax(1), e / e.sum(1, keepdims=True))
    centred = A - A.mean(1, keepdims=True)
    check(a.layer_norm([5]), centred / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-5), 1e-4)


def test_views_share_memory():
    x = pm.zeros(2, 3)
    x.view(6)[4] = 7.0
    assert x.tolist() == [[0.0, 0.0, 0.0], [0.0, 7.0, 0.0]]
    assert x.view([3, 2]).shape == (3, 2)
    assert x.T.stride() == (1, 3)
    assert x.t().data_ptr() == x.data_ptr()


@pytest.mark.parametrize(
    "index",
    [
        0,
        -1,
        slice(1, None),
        slice(None, None, 2),
        (slice(None), 1),
        (..., 0),
        (None, 1),
        (1, ..., None),
        (slice(3, 1), 2),
        (),
        ...,
    ],
)
def test_basic_indexing(index):
    check(pm.from_numpy(A)[index], A[index])


def test_advanced_indexing_and_writes():
    a, rows = pm.from_numpy(A), np.array([2, 0])
    check(a[pm.from_numpy(rows)], A[rows])
    check(a[:, pm.from_numpy(rows)], A[:, rows])
    check(a[a > 0], A[A > 0])
    expected = A.copy()
    a[1] = 5
    expected[1] = 5
    a[:, 2] = pm.ones(4)
    expected[:, 2] = 1
    a[a < 0] = 0.0
    expected[expected < 0] = 0
    check(a, expected)


def test_wrong_indices():
    a = pm.from_numpy(A)
    with pytest.raises(IndexError):
        a[4]
    with pytest.raises(IndexError):
        a[0, 0, 0]
    with pytest.raises(ValueError):
        a[::-1]
    with pytest.raises(TypeError):
        a["name"]


@pytest.mark.parametrize("name", ["bool", "uint8", "int32", "int64", "float16", "float32", "float64"])
def test_numpy_both_ways(name):
    array = (np.arange(6).reshape(2, 3) % 2).astype(name)
    tensor = pm.from_numpy(array.T)
    assert tensor.dtype == getattr(pm, name)
    back = tensor.numpy()
    assert back.dtype == array.dtype
    np.testing.assert_array_equal(back, array.T)
    np.testing.assert_array_equal(np.asarray(tensor), array.T)


def test_tensor_from_values():
    assert pm.tensor(3).shape == ()
    assert pm.tensor([[1, 2], [3, 4]]).dtype == pm.int64
    assert pm.tensor([1, 2.5]).tolist() == [1.0, 2.5]
    assert pm.tensor([True, False]).dtype == pm.bool
    assert pm.tensor([1, 2], dtype=pm.float64).dtype == pm.float64
    assert pm.tensor([]).shape == (0,)
    with pytest.raises(ValueError):
        pm.tensor([[1], [2, 3]])
    with pytest.raises(ValueError):
        pm.tensor([[1], 2])


def test_seeds():
    pm.manual_seed(5)
    first = pm.randn(8).tolist()
    pm.manual_seed(5)
    assert pm.randn(8).tolist() == first


def test_numbers_and_text():
    x = pm.tensor([2.5])
    assert (float(x), int(x), bool(x), x.item()) == (2.5, 2, True, 2.5)
    assert repr(pm.tensor([1, 2])) == "tensor([1, 2])"
    assert len(pm.zeros(3, 2)) == 3


def test_lists_as_indices():
    x = pm.arange(12).reshape(3, 4)
    rows = x.tolist()
    assert x[[1, 2]].tolist() == x[range(1, 3)].tolist() == x[[1, 2], :].tolist() == rows[1:]
    assert x[[True, False, True]].tolist() == [rows[0], rows[2]]
    assert x[[0, 1], [1, 0]].tolist() == x[[[0, 1], [1, 0]]].tolist() == [1, 4]
    assert x[:, [1, 2]].tolist() == x[..., [1, 2]].tolist() == [[1, 2], [5, 6], [9, 10]]
    assert x[0, [True, False, True, False]].tolist() == [0, 2]
    # A list with more than numbers in it stands for a tuple, unless it is long.
    assert x[[slice(0, 1)]].tolist() == x[[None, 0]].tolist() == [rows[0]]
    assert x[[pm.tensor([0, 1]), pm.tensor([1, 0])]].tolist() == [1, 4]
    assert x[[(0, 1)]].tolist() == rows[:2] and x[[0, [1, 2]]].tolist() == [1, 2]
    assert x[[1] * 40].shape == (40, 4) and x[[]].shape == (0, 4)
    assert x[[1.5]].tolist() == [rows[1]] and x[[-1]].tolist() == [rows[2]]
    for wrong in ([5], [True, False], 1.0):
        with pytest.raises(IndexError):
            x[wrong]
    with pytest.raises(TypeError):
        x["a"]
    x[[0, 1], [1, 0]] = pm.tensor([8, 9])
    x[[2]] = 7
    assert x.tolist() == [[0, 8, 2, 3], [9, 5, 6, 7], [7, 7, 7, 7]]


def test_truths_as_indices():
    x = pm.arange(6).reshape(2, 3)
    for true in (True, pm.tensor(True)):
        assert x[true].tolist() == [x.tolist()] and x[true, 0].tolist() == [[0, 1, 2]]
    assert x[False].shape == (0, 2, 3)
    x[False] = 5
    assert x.sum().item() == 15
    x[True] = 1
    assert x.sum().item() == 6


def test_slice():
    x = pm.arange(3)
    for arguments, expected in (
        ((), [0, 1, 2]),
        ((0,), [0, 1, 2]),
        ((0, 1), [1, 2]),
        ((0, None, 2), [0, 1]),
        ((0, -2), [1, 2]),
        ((0, 0, -1), [0, 1]),
        ((0, 5, 9), []),
        ((0, 2, 1), []),
        ((0, 0, 3, 2), [0, 2]),
    ):
        assert x.slice(*arguments).tolist() == expected
    assert pm.arange(20).slice(dim=0, start=-10, end=-2, step=3).tolist() == [10, 13, 16]
    for step in (0, -1):
        with pytest.raises(RuntimeError, match="step"):
            x.slice(0, 0, 3, step)


def test_random_bools():
    drawn = pm.randint(0, 2, (1000,), dtype=pm.bool)
    assert drawn.dtype == pm.bool and 400 < drawn.sum().item() < 600
    assert not pm.randint(0, 1, (10,), dtype=pm.bool).any().item()
    for low, high in ((0, 3), (-1, 1)):
        with pytest.raises((RuntimeError, ValueError), match="bool"):
            pm.randint(low, high, (2,), dtype=pm.bool)


def test_rows_of_a_tensor():
    x = pm.arange(4).reshape(2, 2)
    assert [row.tolist() for row in x] == [[0, 1], [2, 3]]
    assert [row.tolist() for row in pm.zeros(0, 3)] == []
    with pytest.raises(TypeError, match="no rows"):
        list(pm.tensor(1.0))


def test_assigned_values_may_have_leading_dimensions_of_one():
    x = pm.zeros(2, 3)
    x[0] = pm.ones(1, 1, 3)
    x[pm.tensor([1])] = pm.full((1, 1, 1, 3), 2.0)
    assert x.tolist() == [[1.0, 1.0, 1.0], [2.0, 2.0, 2.0]]
    with pytest.raises(RuntimeError):
        x[0] = pm.ones(2, 3)


def test_integers_that_were_copied_into_have_no_gradient():
    x = pm.tensor([1.5, 2.5], requires_grad=True)
    whole = pm.zeros(2, dtype=pm.int64)
    whole.copy_(x)
    whole[0] = x[1]
    assert (whole.tolist(), whole.requires_grad, whole.is_leaf) == ([2, 2], False, True)


def test_the_gradient_of_an_extreme_beside_nan():
    # PyTorch's answers.
    nan = float("nan")
    for extreme, lower in ((pm.maximum, 0.0), (pm.minimum, 1.0)):
        a = pm.tensor([nan, 1.0, 2.0, -1.0], requires_grad=True)
        b = pm.tensor([1.0, nan, 2.0, 2.0], requires_grad=True)
        extreme(a, b).sum().backward()
        assert a.grad.tolist() == [1.0, 1.0, 0.5, lower]
        assert b.grad.tolist() == [1.0, 1.0, 0.5, 1.0 - lower]


def test_targets_that_share_bytes_with_what_is_read_through_another_dtype():
    both = pm.zeros(8, dtype=pm.float64)
    behind, as_bytes = both[4:], both.view(pm.bool)  # bytes 32 to 64 of 64
    with pytest.raises(RuntimeError, match="shares memory"):
        pm.any(behind, out=as_bytes[40])
    assert pm.any(behind, out=as_bytes[20]).item() is False


def test_an_index_that_the_operation_itself_would_overwrite():
    both = pm.zeros(16)
    target, index = both[8:], both.view(pm.int64)[4:]  # the same 32 bytes
    index[0] = 2
    with pytest.raises(RuntimeError, match="shares memory"):
        target.scatter_add_(0, index, pm.full((4,), 1e30))
    assert index.tolist() == [2, 0, 0, 0]
