"""`plimsoll.nn.functional`: PyTorch's names, arguments of old, warnings and refusals."""

import math

import plimsoll
import plimsoll.nn.functional as F
import pytest


def test_reductions_of_old_warn_and_mean_what_they_meant():
    x, y = plimsoll.tensor([1.0, 2.0]), plimsoll.tensor([0.0, 0.0])
    with pytest.warns(UserWarning, match="reduction='sum'"):
        assert F.mse_loss(x, y, size_average=False).item() == 5.0
    with pytest.warns(UserWarning, match="reduction='none'"):
        assert F.mse_loss(x, y, reduce=False).tolist() == [1.0, 4.0]
    with pytest.raises(ValueError, match="not a valid value for reduction"):
        F.mse_loss(x, y, reduction="average")


def test_cross_entropy_takes_classes_and_probabilities():
    scores = plimsoll.zeros(2, 4, dtype=plimsoll.float64, requires_grad=True)
    by_class = F.cross_entropy(scores, plimsoll.tensor([1, 3]))
    assert by_class.item() == pytest.approx(math.log(4))
    by_class.backward()
    assert scores.grad.sum().item() == pytest.approx(0.0)
    assert scores.grad[0, 1].item() == pytest.approx((0.25 - 1) / 2)
    even = F.cross_entropy(scores, plimsoll.full((2, 4), 0.25, dtype=plimsoll.float64))
    assert even.item() == pytest.approx(math.log(4))


def test_a_target_out_of_range_is_an_index_error():
    with pytest.raises(IndexError, match="out of bounds"):
        F.cross_entropy(plimsoll.zeros(2, 4), plimsoll.tensor([0, 4]))
    with pytest.raises(IndexError, match="out of range"):
        F.embedding(plimsoll.tensor([2]), plimsoll.zeros(2, 3))


def test_embeddings_are_scaled_down_to_their_norm():
    table = plimsoll.tensor([[3.0, 4.0], [0.3, 0.4]])
    F.embedding(plimsoll.tensor([0, 1]), table, max_norm=1.0)
    assert table.tolist()[0] == pytest.approx([0.6, 0.8])
    assert table.tolist()[1] == pytest.approx([0.3, 0.4])


def test_sparse_gradients_are_refused():
    table = plimsoll.zeros(2, 3, requires_grad=True)
    with pytest.raises(NotImplementedError, match="sparse"):
        F.embedding(plimsoll.tensor([0]), table, sparse=True)


def test_dropout_drops_whole_channels():
    x = plimsoll.ones(4, 8, 3, 3)
    kept = F.dropout2d(x, 0.5)
    channels = kept.reshape(32, 9).tolist()
    assert all(set(channel) in ({0.0}, {2.0}) for channel in channels)
    with pytest.raises(ValueError, match="between 0 and 1"):
        F.dropout(x, 1.5)


def test_attention_sees_the_past_alone():
    x = plimsoll.randn(1, 1, 5, 4)
    y = F.scaled_dot_product_attention(x, x, x, is_causal=True)
    assert y[0, 0, 0].tolist() == pytest.approx(x[0, 0, 0].tolist())


def test_softmax_without_a_dimension_warns():
    with pytest.warns(UserWarning, match="dim"):
        assert F.softmax(plimsoll.zeros(2, 2)).tolist() == [[0.5, 0.5], [0.5, 0.5]]


def test_parts_are_copied_or_written():
    x = plimsoll.arange(5.0)
    parts = plimsoll.split_copy(x, 2)
    assert [part.tolist() for part in parts] == [[0.0, 1.0], [2.0, 3.0], [4.0]] and parts[0].data_ptr() != x.data_ptr()
    into = [plimsoll.zeros(2), plimsoll.zeros(2), plimsoll.zeros(1)]
    assert plimsoll.split_copy(x, 2, out=into) is None and [part.tolist() for part in into] == [part.tolist() for part in parts]
    with pytest.raises(RuntimeError, match="out= argument of size 3, got size 1"):
        plimsoll.split_copy(x, 2, out=into[:1])


@pytest.mark.parametrize(
    ("mode", "padding", "expected"),
    [
        ("sum", None, [[6.0, 9.0], [0.0, 0.0]]),
        ("sum", 5, [[6.0, 9.0], [6.0, 7.0]]),
        ("mean", 5, [[2.0, 3.0], [6.0, 7.0]]),
        ("max", None, [[4.0, 5.0], [6.0, 7.0]]),
    ],
)
def test_a_last_offset_before_the_end(mode, padding, expected):
    table = plimsoll.arange(12.0).reshape(6, 2)
    bags = F.embedding_bag(
        plimsoll.arange(4), table, plimsoll.tensor([0, 3, 3]), mode=mode, include_last_offset=True, padding_idx=padding
    )
    assert bags.tolist() == expected
