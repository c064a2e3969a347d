"""Whole numbers keep all 64 bits, as in PyTorch; what does not fit is refused."""

import pytest

import plimsoll as pm

BIG = 2**53 + 1


def test_numbers_go_in_and_out():
    x = pm.tensor([[BIG, -BIG], [2**63 - 1, -(2**63)]])
    assert x.tolist() == [[BIG, -BIG], [2**63 - 1, -(2**63)]]
    assert (x[0, 0].item(), int(x[0, 1]), pm.tensor(BIG).tolist()) == (BIG, -BIG, BIG)
    assert pm.tensor([BIG, 1.0], dtype=pm.int64).tolist() == [BIG, 1]
    assert pm.tensor([1.9, -1.9], dtype=pm.int64).tolist() == [1, -1]
    assert pm.tensor([0.5, 0.0], dtype=pm.bool).tolist() == [True, False]
    assert pm.full((1,), BIG).tolist() == [BIG]
    assert pm.zeros(1, dtype=pm.int64).fill_(BIG).tolist() == [BIG]


def test_arange():
    start = 2**60
    assert pm.arange(start, start + 3).tolist() == [start, start + 1, start + 2]
    assert pm.arange(start + 3, start, -1).tolist() == [start + 3, start + 2, start + 1]
    assert pm.arange(5, 5).tolist() == []
    assert pm.arange(0, 1, 0.5).tolist() == [0.0, 0.5]
    for wrong in [(start + 3, start), (0, 3, 0), (-(2**63), 2**63 - 1)]:
        with pytest.raises((ValueError, RuntimeError)):
            pm.arange(*wrong)


def test_arithmetic_and_comparisons():
    x = pm.tensor([BIG])
    assert ((x + 2).item(), (x - 2).item(), (x * 3).item(), (BIG + 4 - x).item()) == (BIG + 2, BIG - 2, 3 * BIG, 4)
    assert (x.add(BIG, alpha=3).item(), x.sub(x, alpha=2).item()) == (4 * BIG, -BIG)
    for name, expected in [
        ("eq", [False, True, False]),
        ("ne", [True, False, True]),
        ("lt", [False, False, True]),
        ("le", [False, True, True]),
        ("gt", [True, False, False]),
        ("ge", [True, True, False]),
    ]:
        assert [getattr(x, name)(other).item() for other in (BIG - 1, BIG, BIG + 1)] == expected, name
    assert pm.tensor([BIG, 2]).sum().item() == BIG + 2
    assert pm.full((1001,), BIG).sum().item() == 1001 * BIG
    assert (pm.tensor([[BIG, 1]]) @ pm.tensor([[1], [2]])).tolist() == [[BIG + 2]]
    assert pm.where(pm.tensor([False]), x, BIG + 2).tolist() == [BIG + 2]
    assert set(pm.randint(2**60, 2**60 + 3, (100,)).tolist()) == {2**60, 2**60 + 1, 2**60 + 2}


def test_what_does_not_fit_is_refused():
    for wrong in [
        lambda: pm.tensor([300], dtype=pm.uint8),
        lambda: pm.tensor([2**40, 1.0], dtype=pm.int32),
        lambda: pm.tensor([float("nan")], dtype=pm.int64),
        lambda: pm.full((1,), 300, dtype=pm.uint8),
        lambda: pm.zeros(1, dtype=pm.int32).fill_(2**40),
    ]:
        with pytest.raises((RuntimeError, ValueError), match="does not fit"):
            wrong()
    assert pm.tensor([-1], dtype=pm.uint8).tolist() == [255]
    for wrong in [lambda: pm.tensor([2**64]), lambda: pm.full((1,), 2**64), lambda: pm.ones(1).add(2**64)]:
        with pytest.raises(OverflowError):
            wrong()
    with pytest.raises(TypeError):
        pm.ones(1) + 2**64


def test_the_truth_of_several_values_is_refused():
    with pytest.raises(RuntimeError, match="^Boolean value of Tensor with more than one value is ambiguous$"):
        bool(pm.ones(2))
    with pytest.raises(RuntimeError, match="^Boolean value of Tensor with no values is ambiguous$"):
        bool(pm.ones(0))
    assert bool(pm.ones(1, 1)) and not bool(pm.zeros(()))
