"""`utils._pytree` with what PyTorch 2.15 gives."""

import collections

import pytest

import plimsoll
from plimsoll.utils import _pytree as pytree

Pair = collections.namedtuple("Pair", "a b")


def tree():
    return {
        "b": [1, None, (2, 3)],
        "a": Pair(4, collections.OrderedDict(x=5)),
        "d": collections.defaultdict(list, z=6),
        "q": collections.deque([7], 3),
        "s": plimsoll.Size([8, 9]),
        "e": [],
        "t": {1, 2},
    }


def test_trees_are_taken_apart_and_built_again():
    leaves, spec = pytree.tree_flatten(tree())
    assert leaves == [1, None, 2, 3, 4, 5, 6, 7, 8, 9, {1, 2}] == pytree.tree_leaves(tree())
    assert (spec.num_leaves, spec.num_nodes, spec.num_children) == (11, 20, 7)
    built = pytree.tree_unflatten(leaves, spec)
    assert built == tree()
    assert type(built["a"]) is Pair and built["d"].default_factory is list and built["q"].maxlen == 3
    assert pytree.tree_structure([1]) == pytree.tree_structure([2]) != pytree.tree_structure((1,))


def test_maps():
    assert pytree.tree_map(lambda x, y: (x, y), [1, {"a": 2, "c": 0}], [3, {"c": 9, "a": [4, 5]}]) == [
        (1, 3),
        {"a": (2, [4, 5]), "c": (0, 9)},
    ]
    assert pytree.tree_map_only(int, lambda x: x + 1, [1, "a", 2.5]) == [2, "a", 2.5]
    assert pytree.tree_map_only(lambda x: x == 1, str, [1, 2]) == ["1", 2]
    assert pytree.tree_leaves([1, [2]], is_leaf=lambda x: x == [2]) == [1, [2]]
    assert pytree.tree_any(lambda x: x == 2, [1, [2]]) and not pytree.tree_all(lambda x: x == 2, [1, [2]])
    tensors = {"x": plimsoll.zeros(2)}
    assert pytree.tree_map_only_(plimsoll.Tensor, lambda x: x.add_(1), tensors) is tensors
    assert tensors["x"].tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    "call, error",
    [
        (lambda: pytree.tree_unflatten([1], pytree.tree_structure([1, 2])), ValueError),
        (lambda: pytree.tree_unflatten([1], 3), TypeError),
        (lambda: pytree.tree_map(max, [1], (1,)), ValueError),
        (lambda: pytree.tree_map(max, [1], [1, 2]), ValueError),
        (lambda: pytree.tree_map(max, {"a": 1}, {"b": 1}), ValueError),
    ],
)
def test_trees_that_do_not_fit(call, error):
    with pytest.raises(error):
        call()


class Own:
    def __init__(self, first, second):
        self.first, self.second = first, second


def test_a_class_of_the_programs_own():
    pytree.register_pytree_node(Own, lambda own: ([own.first], own.second), lambda children, second: Own(*children, second))
    made = pytree.tree_map(lambda x: x * 2, Own(1, "kept"))
    assert (made.first, made.second) == (2, "kept")
    with pytest.raises(ValueError, match="already registered"):
        pytree.register_pytree_node(Own, lambda own: ([], None), lambda children, context: None)
