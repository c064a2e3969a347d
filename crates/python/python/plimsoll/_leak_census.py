"""Who holds each of Plimsoll's tensors, and as what: the walk over Python's names that the watch of PyTorch's programs takes
(`watch/_holders.py`), then what lies behind the tensors: gradients, and through Rust the graphs with what they saved. The result
holds no tensor, only places of blocks."""

from __future__ import annotations

import gc
import types
from typing import Any, NamedTuple

from . import nn
from ._plimsoll import Node, Tensor, UntypedStorage, _block_of, _GraphWalk, _GrowthWatch, _LentMemory, _origin
from .watch import _kinds as kinds
from .watch._findings import Owner, as_container, edge_of_graph, kind_of, owner_of_graphs, preference
from .watch._holders import MOST_ENTRIES, Hold, Walk
from .watch._places import name_of
from .watch._slices import Part, Slices

Place = tuple[int, int]


class BookPlace(NamedTuple):
    """A line of the program, as the books name it."""

    file: str
    line: int
    function: str = ""
    backward: bool = False

    def __str__(self) -> str:
        return name_of(self.file, self.line) if self.file else "unknown line"


class BookRow(NamedTuple):
    """A block that stays."""

    key: Place
    bytes: int
    step: int
    place: BookPlace
    phase: str = ""

    def is_alive(self) -> bool:
        return True


class Census:
    """One look at everything that can be reached by name."""

    def __init__(
        self,
        growth: _GrowthWatch,
        skip: set[int],
        skip_edges: set[Any] | None = None,
        has_libraries: bool = False,
        loops: list[Any] | None = None,
        has_iterators: bool = False,
    ):
        self.owners: dict[Place, Owner] = {}
        self.nodes: dict[Any, tuple[int, Owner | None, list[Place]]] = {}
        #: The tensors at the beginning of old graphs, by their blocks.
        self.roots: dict[Place, BookRow] = {}
        self._slices = Slices(self.owners)
        self._growth, self._graphs = growth, _GraphWalk()
        self._tensors: list[tuple[Tensor, Hold]] = []
        # Storages that are kept by themselves and what arrays have of tensors, and nodes.
        self._memories: list[tuple[UntypedStorage | _LentMemory, Hold]] = []
        self._roots: list[tuple[Node, Hold]] = []
        self._walk = Walk(skip, skip_edges or set(), self._on_object)
        try:
            self._walk.user_globals()
            self._walk.running_frames()
            self._walk.running_loops(loops or [])
            self._walk.context_variables()
            self._walk.finalizers(Tensor)
            if has_iterators:
                # Behind the names: what one of them holds too is told by it.
                self._walk.run()
                self._walk.nameless_iterators()
            if has_libraries:
                self._walk.library_globals()
            self._follow()
        finally:
            self.is_complete = self._walk.is_complete
            self._tensors.clear()
            self._memories.clear()
            self._roots.clear()
            self._walk.close()

    def _on_object(self, value: Any, hold: Hold) -> bool:
        if type(value) in (_LentMemory, UntypedStorage):
            self._memories.append((value, hold))
            return True
        if issubclass(type(value), Node):
            self._roots.append((value, hold))
            return False
        if not issubclass(type(value), Tensor):
            return False
        self._tensors.append((value, hold))
        for inner in gc.get_referents(value):
            # Hooks live beside the tensor in Rust, which shows them to the collector.
            if isinstance(inner, (types.FunctionType, types.MethodType)):
                self._walk.add(inner, Hold(hold, "hook", "", "of a tensor"))
        self._walk.attributes(value, hold)
        return True

    def _follow(self) -> None:
        self._walk.run()
        for tensor, hold in self._tensors:
            self._own_tensor(tensor, hold)
        for memory, hold in self._memories:
            place = _block_of(memory)
            if place is not None:
                self.owners.setdefault(place, Owner(kinds.VALUE, hold, False))
        # A loss is made anew in each step; who holds a graph for longer is named before it.
        graphs: list[tuple[Tensor | Node, Hold]] = [
            (tensor, hold) for tensor, hold in self._tensors if tensor.grad_fn is not None
        ]
        graphs += self._gradients_with_graphs()
        graphs += self._roots
        for root, hold in sorted(graphs, key=_preference):
            self._own_graph(root, hold)

    def _gradients_with_graphs(self) -> list[tuple[Tensor, Hold]]:
        """The gradients to which `backward(create_graph=True)` has left a graph."""
        found = []
        for tensor, hold in self._tensors:
            gradient, behind = _gradient(tensor), Hold(hold, "grad")
            if gradient is not None and gradient.grad_fn is not None and not self._walk.is_skipped(behind):
                found.append((gradient, behind))
        # They share what is behind them: a module's parameters are told as one of many.
        return [(gradient, as_container(behind)) for gradient, behind in found] if len(found) > 1 else found

    def _own(self, tensor: Tensor, kind: str, hold: Hold, is_scalar: bool = False, has_graph: bool = False) -> None:
        place = _block_of(tensor)
        if place is None:
            return
        each, nbytes = tensor.element_size(), tensor.untyped_storage().nbytes()
        part = Part(tensor.storage_offset() * each, tensor.numel() * each, tensor.is_contiguous())
        if place in self.owners:
            self._slices.one_more(place, part, nbytes)
        else:
            self.owners[place] = self._slices.first(place, Owner(kind, hold, is_scalar, has_graph), part, nbytes)

    def _own_tensor(self, tensor: Tensor, hold: Hold) -> None:
        is_leaf = tensor.is_leaf and tensor.requires_grad
        is_parameter = isinstance(tensor, nn.Parameter)
        kind = kind_of(hold, is_parameter, is_leaf)
        self._own(tensor, kind, hold, tensor.dim() == 0, tensor.grad_fn is not None)
        gradient = _gradient(tensor)
        if gradient is not None:
            of = kinds.GRADIENT_OF_PARAMETER if is_parameter else kinds.GRADIENT_OF_INPUT
            self._own(gradient, of, Hold(hold, "grad"))

    def _own_graph(self, root: Tensor | Node, hold: Hold) -> None:
        """What a tensor's node leads to, or a node that is kept by itself."""
        if isinstance(root, Tensor):
            tensor, node = root, root.grad_fn
            saved, old = self._graphs.behind(root, self._growth)
        else:
            tensor, node = None, root
            saved, old = self._graphs.behind_node(root, self._growth)
        graph = Hold(hold, "graph", "", node.name() if node is not None else "")
        is_scalar = tensor is not None and tensor.dim() == 0
        for place in saved:
            self.owners.setdefault(place, Owner(kinds.ACTIVATION, graph, is_scalar))
        if old and (tensor is None or self._growth.watches(tensor.device)):
            # Of a very long container only the latest entries were visited.
            longest = max((step.size for step in hold.path() if step.how == "entry"), default=0)
            edge = edge_of_graph(hold)
            before, other, places = self.nodes.get(edge, (0, None, []))
            own = _block_of(tensor) if tensor is not None else None
            made = _origin(tensor) if tensor is not None else None
            if own is not None and made is not None and len(places) < 64:
                places.append(own)
                self.roots[own] = BookRow(own, 0, 0, BookPlace(made[0], made[1]))
            old = int(old * max(longest / MOST_ENTRIES, 1))
            self.nodes[edge] = (before + old, owner_of_graphs(graph, is_scalar, other), places)


def _gradient(tensor: Tensor) -> Tensor | None:
    """The gradient that a tensor has; others warn where they are asked."""
    return tensor.grad if tensor.requires_grad and (tensor.is_leaf or tensor.retains_grad) else None


def _preference(found: tuple[Tensor | Node, Hold]) -> tuple[int, int]:
    root, hold = found
    node = root.grad_fn if isinstance(root, Tensor) else root
    # A variable for a node is made anew as a loss is.
    is_scalar = not isinstance(root, Tensor) or root.dim() == 0
    return preference(hold, is_scalar, node._sequence_nr() if node is not None else 0)
