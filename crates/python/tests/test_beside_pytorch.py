"""What people's programs do and PyTorch's operator samples do not ask: answers are PyTorch 2.15's."""

import math

import plimsoll
import plimsoll.nn.functional as F
import pytest
from plimsoll import tensor

NAN = math.nan


def gradient(function, *values, dtype=plimsoll.float64):
    leaves = [tensor(value, dtype=dtype).requires_grad_() for value in values]
    function(*leaves).sum().backward()
    return [leaf.grad.tolist() for leaf in leaves]


def same(found, wanted):
    flat = [number for row in found for number in row]
    return flat == pytest.approx([number for row in wanted for number in row], nan_ok=True)


def test_a_position_in_a_tensor_makes_a_view():
    x = plimsoll.zeros(3, 2)
    at = tensor(1)
    x[at].add_(1)
    x[:, at].mul_(5)
    x[at][0] = 7
    assert x.tolist() == [[0, 0], [7, 5], [0, 0]]
    assert x[at].data_ptr() == x[1].data_ptr()
    y = plimsoll.arange(60).reshape(3, 4, 5)
    assert y[at, :, tensor([0, 1])].shape == (4, 2)
    assert x[tensor(1, dtype=plimsoll.uint8)].shape == (1, 3, 2)
    with pytest.raises(IndexError):
        x[tensor(3)]


def test_a_mask_is_filled_with_one_value_of_any_dtype():
    mask = tensor([True, False])
    x = plimsoll.zeros(2)
    x[mask] = tensor(1)
    assert x.tolist() == [1, 0]
    x = plimsoll.zeros(2, dtype=plimsoll.float16)
    x[mask] = tensor([1.5])
    assert x.tolist() == [1.5, 0]
    x = plimsoll.zeros(2, 2)
    x[:, mask] = tensor(1)
    assert x.tolist() == [[1, 0], [1, 0]]
    with pytest.raises(RuntimeError):
        x[tensor([0])] = tensor(1)


def test_gradients_at_bounds():
    x = [0.0, 1.0, -1.0, 2.0, NAN, 0.5]
    assert gradient(lambda x: x.clamp(min=0), x) == [[0, 1, 0, 1, 0, 1]]
    assert gradient(lambda x: x.clamp(0, 1), x) == [[0, 0, 0, 0, 0, 1]]
    assert gradient(lambda x: x.clamp_max(1), x) == [[1, 0, 1, 0, 0, 1]]
    lows, highs = [0.0] * 6, [1.0] * 6
    wanted = [[0.5, 0.5, 0, 0, 1, 1], [0.5, 0, 1, 0, 0, 0], [0, 0.5, 0, 1, 0, 0]]
    assert gradient(lambda x, a, b: x.clamp(a, b), x, lows, highs) == wanted
    wanted = [[0.5, 1, 0, 1, 1, 1], [0.5, 0, 1, 0, 1, 0]]
    assert gradient(lambda x, a: x.clamp(min=a), x, lows) == wanted
    wanted = [[0, 1, 0, 0, 1, 0], [1, 0, 1, 0, 0, 1], [0, 0, 0, 1, 0, 0]]
    assert gradient(lambda x, a, b: x.clamp(a, b), x, highs, highs) == wanted
    wanted = [[0, 0, 0, 0, 1, 0], [0] * 6, [1] * 6]
    assert gradient(lambda x, a, b: x.clamp(a, b), x, [2.0] * 6, highs) == wanted


def test_gradients_of_losses_at_their_kinks():
    same_sign = tensor([-1.0, -1.0])
    assert gradient(lambda x: F.hinge_embedding_loss(x, same_sign.double(), reduction="sum"), [1.0, 0.5]) == [[0, -1]]
    ones = plimsoll.ones(2).double()
    found = gradient(lambda a, b: F.margin_ranking_loss(a, b, ones, reduction="sum"), [1.0, 0.0], [1.0, 2.0])
    assert found == [[0, -1], [0, 1]]
    x = [[1.0, 0.0, 0.5]]
    found = gradient(lambda x: F.multi_margin_loss(x, tensor([0]), reduction="sum"), x)
    assert same(found[0], [[-1 / 3, 0, 1 / 3]])


def test_labels_end_where_the_list_does():
    x = tensor([[0.1, 0.2, 0.4, 0.8]], dtype=plimsoll.float64)
    found = F.multilabel_margin_loss(x, tensor([[3, 0, -1, 1]]))
    assert found.item() == pytest.approx(0.85)
    assert F.multilabel_margin_loss(x, tensor([[-1, 0, 1, 2]])).item() == 0


def test_norms_of_very_large_and_small_numbers():
    for scale in (1e-30, 1.0, 1e30):
        x = plimsoll.full((5,), scale)
        assert x.norm().item() == pytest.approx(math.sqrt(5) * scale, rel=1e-6)
    assert plimsoll.zeros(3).norm().item() == 0
    assert math.isnan(tensor([NAN, 1.0]).norm().item())


def test_gradients_are_shared_by_equals():
    assert gradient(lambda x: x.max(), [1.0, NAN, NAN, 2.0]) == [[0, 0.5, 0.5, 0]]
    assert gradient(lambda x: x.min(), [3.0, 1.0, 1.0]) == [[0, 0.5, 0.5]]
    assert gradient(lambda x: x.median(), [3.0, 1.0, 3.0, 5.0, 0.0]) == [[0.5, 0, 0.5, 0, 0]]
    assert gradient(lambda x: x.median(), [3.0, NAN, 3.0]) == [[0, 1, 0]]
    assert gradient(lambda x: x.nanmedian(), [3.0, NAN, 3.0, 5.0, 0.0]) == [[0.5, 0, 0.5, 0, 0]]
    found = gradient(plimsoll.fmax, [1.0, 2.0, NAN, NAN], [1.0, 1.0, NAN, 1.0])
    assert found == [[0.5, 1, 1, 0], [0.5, 0, 0, 1]]
    assert same(gradient(plimsoll.atan2, [0.0, 1.0], [0.0, 0.0]), [[0, 0], [0, -1]])


def test_numbers_are_cut_to_the_bits_beside_them():
    x = tensor([7, 200], dtype=plimsoll.uint8)
    assert (x // -1).tolist() == [0, 0]
    assert (x % -1).tolist() == [7, 200]
    assert plimsoll.fmod(x, -1).tolist() == [7, 200]
    assert (x // 300).tolist() == [0, 4]
    assert plimsoll.remainder(-1, x).tolist() == [3, 55]


def test_a_number_may_come_first():
    ones = plimsoll.ones(2, dtype=plimsoll.int32)
    for found, wanted in [
        (plimsoll.add(2, ones, alpha=2), [4, 4]),
        (plimsoll.sub(2, ones, alpha=2), [0, 0]),
        (plimsoll.mul(2, ones), [2, 2]),
        (plimsoll.floor_divide(7, ones), [7, 7]),
    ]:
        assert (found.tolist(), found.dtype) == (wanted, plimsoll.int32)
    assert plimsoll.div(1, plimsoll.ones(2), rounding_mode="floor").tolist() == [1, 1]
    assert plimsoll.mul(2.5, ones).dtype == plimsoll.float32


def test_no_fraction_becomes_whole_in_place():
    with pytest.raises(RuntimeError, match="can't be cast"):
        tensor([7]).floor_divide_(tensor([2.0]))


def test_searches_promote_and_pass_nan():
    assert plimsoll.searchsorted(tensor([1.0, 2.0, 3.0]), tensor([2])).tolist() == [1]
    assert plimsoll.searchsorted(tensor([1, 2, 3]), tensor([2.5])).tolist() == [2]
    behind = plimsoll.searchsorted(tensor([1.0, NAN, NAN]), tensor([NAN, 2.0, 0.0]))
    assert behind.tolist() == [3, 3, 3]


def test_indices_of_fills_count_from_the_end():
    assert plimsoll.zeros(3).index_fill(0, tensor([-1]), 2.0).tolist() == [0, 0, 2]
    with pytest.raises(IndexError):
        plimsoll.zeros(3).index_fill(0, tensor([-4]), 2.0)


def test_quantiles_beside_infinity():
    x = tensor([-math.inf, 1.0, 2.0])
    assert math.isnan(plimsoll.quantile(x, 0.1).item())
    assert plimsoll.quantile(x, 0.6).item() == pytest.approx(1.2)
    assert plimsoll.nanquantile(tensor([1.0, math.inf]), 0.1).item() == math.inf


def test_what_is_wider_than_the_input_is_taken():
    x = plimsoll.randn(2, 4).to(plimsoll.bfloat16).requires_grad_()
    weight, bias = plimsoll.randn(4).requires_grad_(), plimsoll.randn(4)
    found = F.layer_norm(x, (4,), weight, bias)
    wanted = F.layer_norm(x.float(), (4,), weight, bias).to(plimsoll.bfloat16)
    assert found.tolist() == wanted.tolist()
    found.sum().backward()
    assert (x.grad.dtype, weight.grad.dtype) == (plimsoll.bfloat16, plimsoll.float32)
    assert F.group_norm(x, 2, weight, bias).dtype == plimsoll.bfloat16
    query = plimsoll.ones(1, 1, 2, 4).to(plimsoll.float16)
    mask = tensor([[-1e9, -1e9], [0.0, -math.inf]])
    found = F.scaled_dot_product_attention(query, query, query, attn_mask=mask)
    assert found.dtype == plimsoll.float16
    assert found.tolist() == [[[[1] * 4, [1] * 4]]]
    classes = tensor([0, 1], dtype=plimsoll.uint8)
    assert F.cross_entropy(plimsoll.zeros(2, 4), classes).item() == pytest.approx(math.log(4))


def test_shapes_without_elements():
    weight = plimsoll.zeros(3, 0, 2, 2).requires_grad_()
    F.conv2d(plimsoll.zeros(1, 0, 4, 4), weight).sum().backward()
    assert weight.grad.shape == (3, 0, 2, 2)
    assert plimsoll.tensordot(plimsoll.ones(2), plimsoll.ones(3), 0).shape == (2, 3)
    apart = plimsoll.cdist(plimsoll.zeros(2, 0), plimsoll.zeros(3, 0))
    assert [math.copysign(1, number) for row in apart.tolist() for number in row] == [1] * 6
    assert plimsoll.zeros(0, dtype=plimsoll.int64).median().item() == -(2**63)


def test_circles_around_nothing():
    for shape, pad, wanted in [
        ((0, 3, 5, 4), (1,) * 6, (0, 5, 7, 6)),
        ((2, 0, 5, 4), (1,) * 4, (2, 0, 7, 6)),
        ((0, 5, 4), (1,) * 4, (0, 7, 6)),
    ]:
        assert F.pad(plimsoll.zeros(*shape), pad, mode="circular").shape == wanted
    for mode in ("reflect", "replicate"):
        assert F.pad(plimsoll.zeros(0, 3, 5, 4), (1,) * 4, mode=mode).shape == (0, 3, 7, 6)
        with pytest.raises(RuntimeError):
            F.pad(plimsoll.zeros(2, 0, 5, 4), (1,) * 4, mode=mode)


def test_copies_need_not_wait():
    x = plimsoll.zeros(2)
    assert x.copy_(plimsoll.ones(2), non_blocking=True).tolist() == [1, 1]
    assert x.copy_(plimsoll.zeros(2), True).tolist() == [0, 0]


def test_expanded_tensors_are_filled():
    base = plimsoll.zeros(2, 1)
    assert base.expand(2, 3).fill_(2).tolist() == [[2] * 3] * 2
    assert base.tolist() == [[2], [2]]
    assert base.expand(2, 3).zero_().tolist() == [[0] * 3] * 2


def test_impossible_draws_are_refused():
    with pytest.raises(RuntimeError):
        plimsoll.bernoulli(tensor([1.5]))
    with pytest.raises(RuntimeError):
        plimsoll.normal(plimsoll.zeros(2), tensor([-1.0, 1.0]))
    with pytest.raises(RuntimeError):
        plimsoll.zeros(2, dtype=plimsoll.int8).random_(0, 300)


def test_many_draws_from_many_weights_take_little():
    plimsoll.manual_seed(0)
    weights = plimsoll.ones(100_000)
    weights[0] = 0
    drawn = plimsoll.multinomial(weights, 100_000, replacement=True)
    assert (drawn.shape, drawn.min().item() >= 1) == ((100_000,), True)
    assert drawn.double().mean().item() == pytest.approx(50_000, rel=0.01)
    few = plimsoll.multinomial(tensor([[0.0, 1.0, 3.0, 0.0], [1.0, 0, 0, 0]]), 40_000, replacement=True)
    assert few[1].max().item() == 0
    counts = plimsoll.bincount(few[0], minlength=4).tolist()
    assert counts[0] == counts[3] == 0
    assert counts[2] / counts[1] == pytest.approx(3, rel=0.05)


def test_rows_that_are_taken_often_count_less():
    table = plimsoll.ones(3, 2).requires_grad_()
    index, offsets = tensor([0, 1, 0, 2]), tensor([0, 2])
    F.embedding_bag(index, table, offsets, mode="sum", scale_grad_by_freq=True).sum().backward()
    assert table.grad.tolist() == [[1, 1], [1, 1], [1, 1]]


def test_many_bins_and_few_elements():
    counts = plimsoll.bincount(tensor([0, 5, 5, 1_000_000]))
    assert (counts.shape, counts[5].item(), counts.sum().item()) == ((1_000_001,), 2, 4)
    weighted = plimsoll.bincount(tensor([1, 1]), weights=tensor([0.5, 0.25]))
    assert weighted.tolist() == [0, 0.75]


def test_what_a_tensor_says_of_itself():
    x = plimsoll.zeros(2, 3)
    part = x[1:, 1:]
    assert (part.stride(0), part.stride(-1), part.stride()) == (3, 1, (3, 1))
    with pytest.raises(IndexError):
        part.stride(2)
    assert (x.is_cuda, x.is_floating_point(), x.long().is_floating_point()) == (False, True, False)
    storage = part.untyped_storage()
    assert (storage.nbytes(), storage.size(), len(storage)) == (24, 24, 24)
    assert (storage.data_ptr(), storage.device) == (x.data_ptr(), x.device)
    assert x.long().type_as(x).dtype == plimsoll.float32
    with pytest.raises(RuntimeError):
        x.cuda("cpu")
    assert x.gather(0, tensor([[1, 0, 1]]), sparse_grad=False).tolist() == [[0, 0, 0]]


@pytest.mark.parametrize(
    "name, arguments, dtypes",
    [
        ("topk", (1,), ("float32", "int32")),
        ("topk", (1,), ("float64", "int64")),
        ("max", (1,), ("float32", "float32")),
        ("min", (1,), ("float64", "int64")),
        ("kthvalue", (1,), ("float32", "int32")),
        ("median", (1,), ("float64", "int64")),
        ("nanmedian", (1,), ("float32", "float32")),
        ("mode", (1,), ("float32", "int32")),
        ("cummax", (1,), ("float32", "int32")),
        ("cummin", (1,), ("float64", "int64")),
        ("norm", (2, 1), ("float64",)),
        ("quantile", (0.5,), ("float64",)),
        ("histc", (4,), ("float64",)),
        ("renorm", (2, 0, 1.0), ("float64",)),
        ("clamp", (0, 1), ("float64",)),
        ("clamp_min", (0,), ("float64",)),
    ],
)
def test_targets_of_other_dtypes_are_refused(name, arguments, dtypes):
    x = plimsoll.ones(2, 3)
    outs = tuple(plimsoll.empty(0, dtype=getattr(plimsoll, dtype)) for dtype in dtypes)
    with pytest.raises(RuntimeError):
        getattr(plimsoll, name)(x, *arguments, out=outs if len(outs) > 1 else outs[0])
    assert all(out.numel() == 0 for out in outs)


def test_targets_of_searches_are_of_the_dtype_that_is_asked_for():
    edges, x = tensor([1.0, 2.0]), tensor([1.5])
    for int32, dtype in ((False, plimsoll.int32), (True, plimsoll.int64), (False, plimsoll.float32)):
        with pytest.raises(RuntimeError):
            plimsoll.searchsorted(edges, x, out_int32=int32, out=plimsoll.empty(1, dtype=dtype))
        with pytest.raises(RuntimeError):
            plimsoll.bucketize(x, edges, out_int32=int32, out=plimsoll.empty(1, dtype=dtype))
    assert plimsoll.bucketize(x, edges, out_int32=True, out=plimsoll.empty(1, dtype=plimsoll.int32)).item() == 1


def test_results_are_written_over_their_input():
    for function in (plimsoll.softmax, plimsoll.log_softmax):
        for dim in (0, 1):
            x = tensor([[1.0, 2.0], [3.0, 5.0]])
            wanted = function(x, dim).tolist()
            assert function(x, dim, out=x) is x
            assert x.tolist() == wanted
    x = tensor([[1.0, 2.0], [3.0, 5.0]])
    place = x.data_ptr()
    plimsoll.scatter(x, 0, tensor([[0, 1]]), plimsoll.ones(1, 2), out=x)
    assert x.tolist() == [[1, 2], [3, 1]]
    plimsoll.scatter_add(x, 0, tensor([[0, 1]]), plimsoll.ones(1, 2), out=x)
    assert x.tolist() == [[2, 2], [3, 2]]
    plimsoll.index_add(x, 0, tensor([1]), plimsoll.ones(1, 2), out=x)
    plimsoll.index_copy(x, 0, tensor([0]), plimsoll.zeros(1, 2), out=x)
    plimsoll.index_reduce(x, 0, tensor([1]), plimsoll.full((1, 2), 2.0), "prod", out=x)
    assert (x.tolist(), x.data_ptr()) == ([[0, 0], [8, 6]], place)
    with pytest.raises(RuntimeError):
        plimsoll.softmax(x, 1, out=x.t())


def test_uniform_numbers_never_reach_their_end():
    plimsoll.manual_seed(0)
    for dtype in (plimsoll.float16, plimsoll.bfloat16, plimsoll.float32):
        x = plimsoll.empty(200_000, dtype=dtype).uniform_(1, 2)
        assert (x.min().item() >= 1, x.max().item() < 2) == (True, True)
        assert x.double().mean().item() == pytest.approx(1.5, abs=0.01)


def test_classes_are_long_or_bytes():
    x = plimsoll.zeros(2, 4)
    for dtype in (plimsoll.int32, plimsoll.int16, plimsoll.float32):
        classes = tensor([0, 1]).to(dtype)
        for loss in (F.cross_entropy, F.nll_loss):
            with pytest.raises(RuntimeError):
                loss(x, classes)


def test_dtypes_that_an_operation_lacks_are_not_implemented():
    for call in (lambda x: x.softmax(0), F.gelu, lambda x: F.layer_norm(x, (2,)), lambda x: x.mean()):
        with pytest.raises(NotImplementedError):
            call(tensor([1, 2]))


def test_parts_by_the_names_of_their_arguments():
    x = plimsoll.arange(5)
    assert [part.tolist() for part in plimsoll.split(x, split_size_or_sections=2)] == [[0, 1], [2, 3], [4]]
    assert [len(part) for part in plimsoll.split(tensor=x, split_size_or_sections=[2, 3], dim=0)] == [2, 3]


def test_gradients_of_elu_pass_where_there_is_no_number():
    assert gradient(F.elu, [NAN, 1.0, 0.0]) == [[1, 1, 1]]


def test_what_old_programs_call():
    x = plimsoll.zeros(3, 3)
    assert (x.type(), x.long().type(), x.itemsize, x.half().itemsize) == ("torch.FloatTensor", "torch.LongTensor", 4, 2)
    assert x.type(plimsoll.int64).dtype == x.type("torch.LongTensor").dtype == plimsoll.int64
    with pytest.raises(ValueError):
        x.type("torch.NoTensor")
    assert x.fill_diagonal_(2) is x
    assert x.tolist() == [[2, 0, 0], [0, 2, 0], [0, 0, 2]]
    tall = plimsoll.zeros(7, 2, dtype=plimsoll.int64).fill_diagonal_(1, wrap=True)
    assert tall.tolist() == [[1, 0], [0, 1], [0, 0], [1, 0], [0, 1], [0, 0], [1, 0]]
    with pytest.raises(RuntimeError):
        plimsoll.zeros(3).fill_diagonal_(1)
    whole = tensor([1, 2]).new_tensor([1.5, 2])
    assert (whole.tolist(), whole.dtype) == ([1, 2], plimsoll.int64)
    assert tensor([1]).new_tensor([1.5], dtype=plimsoll.float64).item() == 1.5
