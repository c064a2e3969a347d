"""What is alive, to whom it belongs and as what: tensors found by name (`_holders.py`), then what lies behind them:
gradients, graphs with the values they saved, hooks. Saved values are read as they are stored; nothing is unpacked or
computed again. The result holds no tensor, only keys of storages."""

from __future__ import annotations

from typing import Any, Iterator, NamedTuple

import torch

from . import _kinds as kinds
from ._holders import MOST_ENTRIES, Hold, Walk
from ._making import storage_of

# Nodes that are followed in one census before it gives up.
MOST_NODES = 500_000


class Owner(NamedTuple):
    """What a storage is to the program, and through what it is held."""

    kind: str
    hold: Hold
    is_scalar: bool
    has_graph: bool = False


class Census:
    """One look at everything that can be reached by name. `old` is the autograd sequence number before which a node
    counts as old: made some steps ago, and still here."""

    def __init__(
        self,
        skip: set[int],
        old: int = 0,
        skip_edges: set[Any] | None = None,
        has_libraries: bool = False,
        traceback: Any = None,
        loops: list[Any] | None = None,
    ):
        self.owners: dict[int, Owner] = {}
        self.nodes: dict[Any, tuple[int, Owner | None, list[int]]] = {}
        self.bytes_of: dict[int, int] = {}
        self.shapes: dict[int, tuple[int, ...]] = {}
        self.live_bytes = 0
        self._old = old
        self._tensors: list[tuple[torch.Tensor, Hold]] = []
        self._seen_nodes: set[Any] = set()
        self._walk = Walk(skip, skip_edges or set(), self._on_object)
        try:
            # No subclass's or mode's code runs when a tensor is asked for its attributes.
            with torch._C.DisableTorchFunction():
                self._walk.user_globals()
                self._walk.running_frames()
                self._walk.running_loops(loops or [])
                self._walk.traceback(traceback)
                if has_libraries:
                    self._walk.library_globals()
                self._follow()
        finally:
            self.is_complete = self._walk.is_complete
            self._tensors.clear()
            self._seen_nodes.clear()
            self._walk.close()

    def _on_object(self, value: Any, hold: Hold) -> bool:
        if issubclass(type(value), torch.Tensor):
            self._tensors.append((value, hold))
            for hook in list((value._backward_hooks or {}).values()):
                self._walk.add(hook, Hold(hold, "hook", "", "of a tensor"))
            self._walk.attributes(value, hold)
            return True
        return False

    def _follow(self) -> None:
        done = 0
        self._walk.run()
        # What hooks packed may lead to more objects and tensors.
        while done < len(self._tensors):
            new = self._tensors[done:]
            done = len(self._tensors)
            for tensor, hold in new:
                self._own_tensor(tensor, hold)
            # A loss is made anew in each step; who holds a graph for longer is named before it.
            for tensor, hold in sorted(new, key=_preference):
                if tensor.grad_fn is not None:
                    self._own_graph(tensor, hold)
            self._walk.run()

    def _own(self, tensor: Any, kind: str, hold: Hold, is_scalar: bool = False, has_graph: bool = False) -> None:
        storage = storage_of(tensor) if isinstance(tensor, torch.Tensor) else None
        if storage is None:
            return
        key = storage._cdata
        if key in self.owners:
            return
        nbytes = storage.nbytes()
        if kind == kinds.VALUE and tensor.numel() * tensor.element_size() * 2 <= nbytes:
            kind = kinds.SLICE
        self.owners[key] = Owner(kind, hold, is_scalar, has_graph)
        self.bytes_of[key] = nbytes
        self.shapes[key] = tuple(tensor.shape)
        self.live_bytes += nbytes

    def _own_tensor(self, tensor: torch.Tensor, hold: Hold) -> None:
        is_leaf = tensor.is_leaf and tensor.requires_grad
        is_parameter = isinstance(tensor, torch.nn.Parameter)
        if is_parameter:
            kind = kinds.PARAMETER
        elif any(step.how == "attribute" and step.name == "state" for step in hold.path()):
            kind = kinds.OPTIMIZER_STATE
        else:
            kind = kinds.INPUT if is_leaf else kinds.VALUE
        self._own(tensor, kind, hold, tensor.dim() == 0, tensor.grad_fn is not None)
        if is_leaf or tensor.retains_grad:
            gradient = kinds.GRADIENT_OF_PARAMETER if is_parameter else kinds.GRADIENT_OF_INPUT
            self._own(tensor.grad, gradient, Hold(hold, "grad"))

    def _own_graph(self, tensor: torch.Tensor, hold: Hold) -> None:
        root = tensor.grad_fn
        graph = Hold(hold, "graph", "", root.name())
        is_scalar, old = tensor.dim() == 0, 0
        storage = storage_of(tensor)
        stack = [root]
        while stack and len(self._seen_nodes) < MOST_NODES:
            node = stack.pop()
            if node in self._seen_nodes:
                continue
            self._seen_nodes.add(node)
            old += node._sequence_nr() < self._old
            self._own_node(node, graph, is_scalar)
            stack.extend(following for following, _ in node.next_functions if following is not None)
        if old:
            # Of a very long container only the latest entries were visited.
            longest = max((step.size for step in hold.path() if step.how == "entry"), default=0)
            old = int(old * max(longest / MOST_ENTRIES, 1))
            edge = hold.edge()
            before, _, keys = self.nodes.get(edge, (0, None, []))
            if storage is not None and len(keys) < 64:
                keys.append(storage._cdata)
            self.nodes[edge] = (before + old, Owner(kinds.NODES, graph, is_scalar), keys)

    def _own_node(self, node: Any, graph: Hold, is_scalar: bool) -> None:
        leaf = getattr(node, "variable", None)
        if leaf is not None and not isinstance(leaf, torch.nn.Parameter):
            self._own(leaf, kinds.INPUT, graph, is_scalar)
            self._own(leaf.grad, kinds.GRADIENT_OF_INPUT, graph, is_scalar)
        for name, saved in _saved(node):
            # `.data` is what was saved, or what a hook packed: it never unpacks.
            packed = saved.data
            self._own(packed, kinds.ACTIVATION, graph, is_scalar)
            if saved.unpack_hook is not None:
                step = Hold(graph, "saved", name, node.name())
                self._walk.add(packed, step)
                self._walk.add(saved.unpack_hook, step)
        if isinstance(node, torch.autograd.function.BackwardCFunction):
            self._walk.attributes(node, graph)


_saved_names: dict[type, list[str]] = {}


def _saved(node: Any) -> Iterator[tuple[str, Any]]:
    kind = type(node)
    names = _saved_names.get(kind)
    if names is None:
        names = [name for name in dir(kind) if name.startswith("_raw_saved_")]
        # Classes of nodes that programs define are not kept alive by the table.
        if not issubclass(kind, torch.autograd.function.BackwardCFunction):
            _saved_names[kind] = names
    for name in names:
        try:
            values = getattr(node, name)
        except RuntimeError:  # freed by backward
            continue
        for value in values if isinstance(values, (tuple, list)) else (values,):
            if value is not None:
                yield name.removeprefix("_raw_"), value


def _preference(found: tuple[torch.Tensor, Hold]) -> int:
    """Containers and attributes before variables, and those before scalars: the order in which holders of one graph
    are named."""
    tensor, hold = found
    if any(step.how in ("entry", "cache", "hook", "closure", "class", "frame") for step in hold.path()):
        return 0
    if hold.how in ("attribute", "item"):
        return 1
    return 2 if tensor.dim() else 3
