"""Functions over lists of tensors: the numbers that methods give, and PyTorch's refusals."""

import plimsoll as pm
import pytest

A, B = [[0.25, 0.75], [0.5, 0.5, 1.0]], [[0.5, 0.125], [0.25, 1.0, 2.0]]


def lists(values=A):
    return [pm.tensor(value) for value in values]


def numbers(tensors):
    return [tensor.tolist() for tensor in tensors]


CASES = [
    ("add", (B,), {"alpha": 2}, lambda a, b: a + 2 * b),
    ("add", (3.0,), {}, lambda a, b: a + 3),
    ("sub", (B,), {}, lambda a, b: a - b),
    ("mul", (B,), {}, lambda a, b: a * b),
    ("div", (B,), {}, lambda a, b: a / b),
    ("maximum", (B,), {}, max),
    ("minimum", (0.5,), {}, lambda a, b: min(a, 0.5)),
    ("pow", (2.0,), {}, lambda a, b: a * a),
    ("addcmul", (B, B), {"value": 2.0}, lambda a, b: a + 2 * b * b),
    ("addcdiv", (B, B), {}, lambda a, b: a + 1),
    ("lerp", (B, 0.5), {}, lambda a, b: (a + b) / 2),
    ("neg", (), {}, lambda a, b: -a),
    ("sqrt", (), {}, lambda a, b: a**0.5),
]


@pytest.mark.parametrize("name, args, named, of", CASES, ids=lambda one: one if isinstance(one, str) else "")
def test_each_tensor_is_computed(name, args, named, of):
    given = [lists(arg) if arg is B else arg for arg in args]
    expected = [[pytest.approx(of(a, b)) for a, b in zip(*pair)] for pair in zip(A, B)]
    tensors = lists()
    made = getattr(pm, f"_foreach_{name}")(tensors, *given, **named)
    assert type(made) is tuple and numbers(made) == expected and numbers(tensors) == A
    assert getattr(pm, f"_foreach_{name}_")(tensors, *given, **named) is tensors
    assert numbers(tensors) == expected


def test_numbers_of_their_own_for_each():
    assert numbers(pm._foreach_mul(lists(), [2.0, 4.0])) == [[0.5, 1.5], [2.0, 2.0, 4.0]]
    assert numbers(pm._foreach_addcmul(lists(), lists(), lists(), pm.tensor([0.0, 1.0])))[0] == A[0]
    assert numbers(pm._foreach_pow(2.0, [pm.tensor([1.0, 3.0])])) == [[2.0, 8.0]]


def test_others():
    assert numbers(pm._foreach_norm(lists(), 1)) == [1.0, 2.0] and numbers(pm._foreach_max(lists())) == [0.75, 1.0]
    into = pm._foreach_zero_(lists())
    assert numbers(into) == [[0.0] * 2, [0.0] * 3]
    assert pm._foreach_copy_(into, lists()) is into and numbers(into) == A == numbers(pm._foreach_clone(into))


def test_gradients_pass_through():
    leaf = pm.ones(2, requires_grad=True)
    sum(part.sum() for part in pm._foreach_exp([leaf, 2 * leaf])).backward()
    assert leaf.grad.tolist() == pytest.approx([2.718281828 + 2 * 7.389056099] * 2)


def test_what_is_refused():
    for call, error, words in [
        (lambda: pm._foreach_add([], 1), RuntimeError, "at least one tensor"),
        (lambda: pm._foreach_add(lists(), lists()[:1]), RuntimeError, "same number of tensors, got 2 and 1"),
        (lambda: pm._foreach_add(lists(), [1.0]), RuntimeError, "same number of elements as scalar list"),
        (lambda: pm._foreach_add(lists(), pm.ones(2)), RuntimeError, "scalar tensor expected to be 0 dim"),
        (lambda: pm._foreach_exp(pm.ones(2)), TypeError, "must be tuple of Tensors, not Tensor"),
        (lambda: pm._foreach_exp([1]), TypeError, "expected Tensor as element 0"),
    ]:
        with pytest.raises(error, match=words):
            call()


def test_operands_by_pytorchs_names():
    def pair():
        return [pm.tensor([1.0, 2.0]), pm.tensor([3.0])]

    def values(tensors):
        return [tensor.tolist() for tensor in tensors]

    assert values(pm._foreach_add(pair(), other=pair(), alpha=2)) == [[3.0, 6.0], [9.0]]
    assert values(pm._foreach_add(self=pair(), scalar=2.0)) == [[3.0, 4.0], [5.0]]
    assert values(pm._foreach_mul(pair(), scalars=[2.0, 3.0])) == [[2.0, 4.0], [9.0]]
    assert values(pm._foreach_pow(pair(), exponent=2)) == [[1.0, 4.0], [9.0]]
    assert values(pm._foreach_lerp(pair(), tensors1=pair(), weight=0.5)) == values(pair())
    assert values(pm._foreach_addcmul(pair(), tensor1=pair(), tensor2=pair(), value=2)) == [[3.0, 10.0], [21.0]]
    for wrong in (
        lambda: pm._foreach_add(pair()),
        lambda: pm._foreach_addcmul(pair(), pair()),
        lambda: pm._foreach_addcmul(pair(), pair(), pm.tensor(1.0)),
        lambda: pm._foreach_lerp(pair()),
        lambda: pm._foreach_copy_(pair(), pm.tensor(1.0)),
    ):
        with pytest.raises(TypeError):
            wrong()
