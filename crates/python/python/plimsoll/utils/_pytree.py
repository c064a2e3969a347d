"""Trees of containers and what is in them, flattened and built again: what programs use of PyTorch's module of this
name. Containers are lists, tuples, sizes (built again as tuples), named tuples, dicts, ordered and default dicts and deques, of these classes exactly, and
what `register_pytree_node` adds; everything else is a leaf, None too.

>>> from plimsoll.utils import _pytree as pytree
>>> leaves, spec = pytree.tree_flatten({"a": [1, 2], "b": (3,)})
>>> leaves
[1, 2, 3]
>>> pytree.tree_unflatten([x * 10 for x in leaves], spec)
{'a': [10, 20], 'b': (30,)}
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from .._size import Size

__all__ = [
    "LeafSpec",
    "PyTree",
    "TreeSpec",
    "register_pytree_node",
    "tree_all",
    "tree_all_only",
    "tree_any",
    "tree_any_only",
    "tree_flatten",
    "tree_iter",
    "tree_leaves",
    "tree_map",
    "tree_map_",
    "tree_map_only",
    "tree_map_only_",
    "tree_structure",
    "tree_unflatten",
]

PyTree = Any
_IsLeaf = Callable[[Any], bool] | None


class _Container(NamedTuple):
    """How a class of containers is taken apart, into children and what else it needs, and put together."""

    flatten: Callable[[Any], tuple[Iterable[Any], Any]]
    unflatten: Callable[[Any, Any], Any]


def _of_dict(make: Callable[[Any, Any], Any], context: Callable[[Any], Any]) -> _Container:
    return _Container(lambda node: (list(node.values()), context(node)), make)


_CONTAINERS: dict[type, _Container] = {
    list: _Container(lambda node: (node, None), lambda children, _: list(children)),
    tuple: _Container(lambda node: (node, None), lambda children, _: tuple(children)),
    Size: _Container(lambda node: (node, None), lambda children, _: tuple(children)),
    dict: _of_dict(lambda children, keys: dict(zip(keys, children)), list),
    OrderedDict: _of_dict(lambda children, keys: OrderedDict(zip(keys, children)), list),
    defaultdict: _of_dict(
        lambda children, context: defaultdict(context[0], zip(context[1], children)),
        lambda node: [node.default_factory, list(node)],
    ),
    deque: _Container(lambda node: (node, node.maxlen), lambda children, maxlen: deque(children, maxlen)),
}
_NAMED_TUPLE = _Container(lambda node: (node, type(node)), lambda children, made: made(*children))


def register_pytree_node(
    cls: type,
    flatten_fn: Callable[[Any], tuple[Iterable[Any], Any]],
    unflatten_fn: Callable[[Any, Any], Any],
    **serialization: Any,
) -> None:
    """Makes a class one of containers. What PyTorch needs to write its trees to files is taken, and not used."""
    if cls in _CONTAINERS:
        raise ValueError(f"{cls} is already registered as pytree node.")
    _CONTAINERS[cls] = _Container(flatten_fn, unflatten_fn)


def _container(node: Any, is_leaf: _IsLeaf) -> _Container | None:
    if is_leaf is not None and is_leaf(node):
        return None
    known = _CONTAINERS.get(type(node))
    if known is None and isinstance(node, tuple) and tuple in type(node).__bases__ and hasattr(node, "_fields"):
        return _NAMED_TUPLE
    return known


@dataclass(frozen=True)
class TreeSpec:
    """The shape of a tree without its leaves. A leaf has no type."""

    type: Any
    context: Any
    children_specs: list[TreeSpec]

    @property
    def num_children(self) -> int:
        """How many children it has."""
        return len(self.children_specs)

    @property
    def num_leaves(self) -> int:
        """How many leaves it has in all."""
        return 1 if self.is_leaf() else sum(child.num_leaves for child in self.children_specs)

    @property
    def num_nodes(self) -> int:
        """How many nodes, leaves among them."""
        return 1 + sum(child.num_nodes for child in self.children_specs)

    def is_leaf(self) -> bool:
        """Whether it is a leaf."""
        return self.type is None

    def unflatten(self, leaves: Iterable[Any]) -> PyTree:
        """The tree of this shape with these leaves."""
        given = list(leaves)
        if len(given) != self.num_leaves:
            raise ValueError(
                f"treespec.unflatten(leaves): `leaves` has length {len(given)} but the spec refers to a pytree that "
                f"holds {self.num_leaves} items."
            )
        return self._built(iter(given))

    def flatten_up_to(self, tree: PyTree) -> list[PyTree]:
        """What stands in another tree at the places of this one's leaves."""
        if self.is_leaf():
            return [tree]
        container = _container(tree, None)
        if container is None or type(tree) is not self.type:
            raise ValueError(f"Node type mismatch; expected {self.type!r}, but got {type(tree)!r}.")
        if isinstance(tree, dict):
            keys = self.context[1] if self.type is defaultdict else self.context
            if set(keys) != set(tree):
                raise ValueError(f"Node keys mismatch; expected {list(keys)!r}, but got {list(tree)!r}.")
            children = [tree[key] for key in keys]
        else:
            children = list(container.flatten(tree)[0])
        if len(children) != self.num_children:
            raise ValueError(f"Node arity mismatch; expected {self.num_children}, but got {len(children)}.")
        return [part for spec, child in zip(self.children_specs, children) for part in spec.flatten_up_to(child)]

    def _built(self, leaves: Iterator[Any]) -> PyTree:
        if self.is_leaf():
            return next(leaves)
        container = _CONTAINERS.get(self.type, _NAMED_TUPLE)
        return container.unflatten([child._built(leaves) for child in self.children_specs], self.context)


def LeafSpec() -> TreeSpec:
    """The shape of a leaf."""
    return TreeSpec(None, None, [])


def tree_flatten(tree: PyTree, is_leaf: _IsLeaf = None) -> tuple[list[Any], TreeSpec]:
    """The leaves of a tree from left to right, and its shape."""
    leaves: list[Any] = []

    def shape(node: Any) -> TreeSpec:
        container = _container(node, is_leaf)
        if container is None:
            leaves.append(node)
            return LeafSpec()
        children, context = container.flatten(node)
        return TreeSpec(type(node), context, [shape(child) for child in children])

    spec = shape(tree)
    return leaves, spec


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> PyTree:
    """The tree of that shape with these leaves."""
    if not isinstance(treespec, TreeSpec):
        raise TypeError(f"tree_unflatten(leaves, treespec): Expected `treespec` to be instance of TreeSpec but got {type(treespec)}.")
    return treespec.unflatten(leaves)


def tree_iter(tree: PyTree, is_leaf: _IsLeaf = None) -> Iterator[Any]:
    """The leaves of a tree, one after another."""
    container = _container(tree, is_leaf)
    if container is None:
        yield tree
        return
    for child in container.flatten(tree)[0]:
        yield from tree_iter(child, is_leaf)


def tree_leaves(tree: PyTree, is_leaf: _IsLeaf = None) -> list[Any]:
    """The leaves of a tree as a list."""
    return list(tree_iter(tree, is_leaf))


def tree_structure(tree: PyTree, is_leaf: _IsLeaf = None) -> TreeSpec:
    """The shape of a tree."""
    return tree_flatten(tree, is_leaf)[1]


def tree_map(func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: _IsLeaf = None) -> PyTree:
    """A tree of the same shape with what `func` makes of each leaf, and of what stands in its place in `rests`."""
    leaves, spec = tree_flatten(tree, is_leaf)
    return spec.unflatten(map(func, leaves, *(spec.flatten_up_to(rest) for rest in rests)))


def tree_map_(func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: _IsLeaf = None) -> PyTree:
    """Calls `func` with each leaf, for what it does to it; returns the tree."""
    leaves, spec = tree_flatten(tree, is_leaf)
    for given in zip(leaves, *(spec.flatten_up_to(rest) for rest in rests)):
        func(*given)
    return tree


_Which = type | tuple[type, ...] | Callable[[Any], bool]


def _picked(which: _Which) -> Callable[[Any], bool]:
    if isinstance(which, (type, tuple)) or not callable(which):
        return lambda leaf: isinstance(leaf, which)
    return which


def tree_map_only(which: _Which, func: Callable[[Any], Any], tree: PyTree, is_leaf: _IsLeaf = None) -> PyTree:
    """As `tree_map`, but only leaves of these classes, or for which a function says so, are changed."""
    picked = _picked(which)
    return tree_map(lambda leaf: func(leaf) if picked(leaf) else leaf, tree, is_leaf=is_leaf)


def tree_map_only_(which: _Which, func: Callable[[Any], Any], tree: PyTree, is_leaf: _IsLeaf = None) -> PyTree:
    """As `tree_map_`, but only with leaves of these classes, or for which a function says so."""
    picked = _picked(which)
    return tree_map_(lambda leaf: func(leaf) if picked(leaf) else leaf, tree, is_leaf=is_leaf)


def tree_all(pred: Callable[[Any], bool], tree: PyTree, is_leaf: _IsLeaf = None) -> bool:
    """Whether `pred` holds for all leaves."""
    return all(map(pred, tree_iter(tree, is_leaf)))


def tree_any(pred: Callable[[Any], bool], tree: PyTree, is_leaf: _IsLeaf = None) -> bool:
    """Whether `pred` holds for a leaf."""
    return any(map(pred, tree_iter(tree, is_leaf)))


def tree_all_only(which: _Which, pred: Callable[[Any], bool], tree: PyTree, is_leaf: _IsLeaf = None) -> bool:
    """Whether `pred` holds for all leaves of these classes."""
    picked = _picked(which)
    return all(pred(leaf) for leaf in tree_iter(tree, is_leaf) if picked(leaf))


def tree_any_only(which: _Which, pred: Callable[[Any], bool], tree: PyTree, is_leaf: _IsLeaf = None) -> bool:
    """Whether `pred` holds for a leaf of these classes."""
    picked = _picked(which)
    return any(pred(leaf) for leaf in tree_iter(tree, is_leaf) if picked(leaf))
