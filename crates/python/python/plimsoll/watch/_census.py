"""What is alive, to whom it belongs and as what: tensors found by name (`_holders.py`), then what lies behind them:
gradients and graphs with the values they saved, as `_gradients.py` reads them, and hooks. The result holds no tensor, only keys
of storages. One that is not whole, as another thread was computing, is nothing to judge by."""

from __future__ import annotations

import math
from typing import Any

import torch

from . import _kinds as kinds
from ._attributes import dispatches
from ._errors import is_an_answer
from ._findings import Owner, as_container, edge_of_graph, kind_of, owner_of_graphs, preference
from ._gradients import Gradients, is_node
from ._holders import MOST_ENTRIES, Hold, Walk
from ._making import address_of, has_bytes, parts_of_sparse, storage_of
from ._slices import Part, Slices
from ._undisturbed import PATIENCE

# Nodes that are followed in one census before it gives up.
MOST_NODES = 500_000
# A subclass may define these otherwise.
_ELEMENT_SIZE, _OFFSET = torch.Tensor.element_size, torch.Tensor.storage_offset
_IS_CONTIGUOUS = torch.Tensor.is_contiguous
_SHAPE = torch.Tensor.shape.__get__
_NAMES_OF_HOOKS = ("_backward_hooks", "_post_accumulate_grad_hooks")
_HOOKS = [getattr(torch.Tensor, name) for name in _NAMES_OF_HOOKS if hasattr(torch.Tensor, name)]


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
        has_modules: bool = False,
        has_addresses: bool = False,
        has_iterators: bool = False,
        patience: float = PATIENCE,
    ):
        self.owners: dict[int, Owner] = {}
        self.nodes: dict[Any, tuple[int, Owner | None, list[int]]] = {}
        self.bytes_of: dict[int, int] = {}
        self.shapes: dict[int, tuple[int, ...]] = {}
        # Where asked for: the device and address of each storage.
        self.addresses: dict[int, tuple[str, int] | None] = {}
        self._has_addresses = has_addresses
        self.live_bytes = 0
        # The module whose parameter, buffer or gradient a storage is, where modules are asked for.
        self.module_of: dict[int, str] = {}
        self._modules: list[tuple[torch.nn.Module, Hold]] | None = [] if has_modules else None
        self._old = old
        self._tensors: list[tuple[torch.Tensor, Hold]] = []
        # Storages and nodes that are kept themselves.
        self._storages: list[tuple[torch.UntypedStorage, Hold]] = []
        self._roots: list[tuple[Any, Hold]] = []
        self._slices = Slices(self.owners)
        self._seen_nodes: set[Any] = set()
        # Gradients with graphs, of leaves that only a graph leads to.
        self._behind_leaves: list[tuple[torch.Tensor, Any, Hold]] = []
        # The ids of tensors whose gradients this look passes by.
        self._passed_by: set[int] = set()
        self._walk = Walk(skip, skip_edges or set(), self._on_object)
        self._gradients = Gradients(patience)
        try:
            # No subclass's or mode's code runs when a tensor is asked for its attributes.
            with torch._C.DisableTorchFunction(), self._gradients:
                self._walk.user_globals()
                self._walk.running_frames()
                self._walk.running_loops(loops or [])
                self._walk.context_variables()
                self._walk.finalizers(torch.Tensor)
                self._walk.traceback(traceback)
                if has_iterators:
                    # Behind the names: what one of them holds too is told by it.
                    self._walk.run()
                    self._walk.nameless_iterators()
                if has_libraries:
                    self._walk.library_globals()
                self._follow()
                self._name_modules()
        finally:
            self.is_complete = self._walk.is_complete
            # Whether all gradients and graphs could be read.
            self.is_whole = self._gradients.is_whole
            self.waited = self._gradients.waited
            self._modules = None
            self._tensors.clear()
            self._storages.clear()
            self._roots.clear()
            self._seen_nodes.clear()
            self._walk.close()

    def _on_object(self, value: Any, hold: Hold) -> bool:
        if issubclass(type(value), torch.Tensor):
            self._tensors.append((value, hold))
            for hooks in _HOOKS:
                for hook in list((hooks.__get__(value) or {}).values()):
                    self._walk.add(hook, Hold(hold, "hook", "", "of a tensor"))
            self._walk.attributes(value, hold)
            return True
        if issubclass(type(value), torch.UntypedStorage):
            self._storages.append((value, hold))
            return True
        if is_node(value):
            self._roots.append((value, hold))
        elif self._modules is not None and issubclass(type(value), torch.nn.Module):
            self._modules.append((value, hold))
        return False

    def _follow(self) -> None:
        done = 0
        self._walk.run()
        # What hooks packed may lead to more objects and tensors.
        while done < len(self._tensors) or self._storages or self._roots:
            new = self._tensors[done:]
            done = len(self._tensors)
            for tensor, hold in new:
                self._own_tensor(tensor, hold)
            while self._storages:
                storage, hold = self._storages.pop(0)
                if has_bytes(storage):
                    self._own_storage(storage, Owner(kinds.VALUE, hold, False), (storage.nbytes(),))
            # A loss is made anew in each step; who holds a graph for longer is named before it.
            graphs: list[tuple[Any, torch.Tensor | None, Any, Hold]] = []
            for tensor, hold in new:
                root = self._gradients.node(tensor)
                if root is not None:
                    order = preference(hold, _shape(tensor) == (), self._gradients.sequence(root))
                    graphs.append((order, tensor, root, hold))
            graphs += self._graphs_of_gradients(new)
            while self._roots:
                root, hold = self._roots.pop(0)
                if self._gradients.is_whole_node(root):
                    # A variable for a node is made anew as a loss is.
                    graphs.append((preference(hold, True, self._gradients.sequence(root)), None, root, hold))
            for _, tensor, root, hold in sorted(graphs, key=lambda found: found[0]):
                self._own_graph(tensor, root, hold)
            while self._behind_leaves:
                self._own_graph(*self._behind_leaves.pop())
            self._walk.run()

    def _graphs_of_gradients(
        self, tensors: list[tuple[torch.Tensor, Hold]]
    ) -> list[tuple[Any, torch.Tensor | None, Any, Hold]]:
        """The graphs that `backward(create_graph=True)` has left behind the gradients of tensors."""
        graphs: list[tuple[Any, torch.Tensor | None, Any, Hold]] = []
        for tensor, hold in tensors:
            gradient, behind = self._gradients.of(tensor), Hold(hold, "grad")
            root = self._gradients.node(gradient) if gradient is not None else None
            if self._walk.is_skipped(behind):
                # Nor is it found by way of a graph that leads to the tensor.
                self._passed_by.add(id(tensor))
            elif gradient is not None and root is not None:
                # A module's own before a loop's variable.
                order = preference(hold, _shape(gradient) == (), self._gradients.sequence(root))
                graphs.append((order, gradient, root, behind))
        if len(graphs) > 1:
            # They share what is behind them: a module's parameters are told as one of many.
            graphs = [(order, gradient, root, as_container(behind)) for order, gradient, root, behind in graphs]
        return graphs

    def _name_modules(self) -> None:
        """Names storages by the modules they belong to, as `named_parameters` would, the outermost module first."""
        named: set[int] = set()
        for module, hold in self._modules or ():
            stack = [(module, ".".join(step.name for step in hold.path() if step.name))]
            while stack:
                module, name = stack.pop()
                if id(module) in named:
                    continue
                named.add(id(module))
                of = self._walk.read.of(module)
                for tensor in (*_values(of.get("_parameters")), *_values(of.get("_buffers"))):
                    for one in (tensor, self._gradients.of(tensor)):
                        storage = storage_of(one) if one is not None else None
                        if storage is not None:
                            self.module_of.setdefault(storage._cdata, name)
                children = of.get("_modules")
                if type(children) is dict:
                    stack += [(child, f"{name}.{key}") for key, child in children.items() if child is not None]

    def _own(self, tensor: Any, kind: str, hold: Hold, is_scalar: bool = False, has_graph: bool = False) -> None:
        if not issubclass(type(tensor), torch.Tensor):
            return
        owner = Owner(kind, hold, is_scalar, has_graph)
        storage = storage_of(tensor)
        if storage is not None:
            shape = _shape(tensor)
            self._own_storage(storage, owner, shape or (), None if shape is None else _part(tensor, shape))
            return
        for component in parts_of_sparse(tensor):
            storage = storage_of(component)
            if storage is not None:
                self._own_storage(storage, owner, _shape(component) or ())

    def _own_storage(
        self, storage: torch.UntypedStorage, owner: Owner, shape: tuple[int, ...], part: Part | None = None
    ) -> None:
        """`part` is what of it is kept; all of it if none is told."""
        key, nbytes = storage._cdata, storage.nbytes()
        part = part or Part(0, nbytes, True)
        if key in self.owners:
            self._slices.one_more(key, part, nbytes)
            return
        self.owners[key] = self._slices.first(key, owner, part, nbytes)
        self.bytes_of[key] = nbytes
        self.shapes[key] = shape
        self.live_bytes += nbytes
        if self._has_addresses:
            self.addresses[key] = address_of(storage)

    def _own_tensor(self, tensor: torch.Tensor, hold: Hold) -> None:
        gradients, is_parameter = self._gradients, self._is_parameter(tensor)
        kind = kind_of(hold, is_parameter, gradients.is_leaf(tensor))
        self._own(tensor, kind, hold, _shape(tensor) == (), gradients.node(tensor) is not None)
        gradient = gradients.of(tensor)
        if gradient is not None:
            of = kinds.GRADIENT_OF_PARAMETER if is_parameter else kinds.GRADIENT_OF_INPUT
            self._own(gradient, of, Hold(hold, "grad"))

    def _is_parameter(self, tensor: torch.Tensor) -> bool:
        # Not `isinstance`: Parameter's own answer to that asks the tensor for an attribute. One of another class has a mark.
        return issubclass(type(tensor), torch.nn.Parameter) or self._walk.read.of(tensor).get("_is_param") is True

    def _own_graph(self, tensor: torch.Tensor | None, root: Any, hold: Hold) -> None:
        """What a tensor's node leads to, or a node that is kept itself."""
        gradients = self._gradients
        graph = Hold(hold, "graph", "", gradients.name(root))
        is_scalar, old = tensor is not None and _shape(tensor) == (), 0
        storage = storage_of(tensor) if tensor is not None else None
        stack = [root]
        while stack and len(self._seen_nodes) < MOST_NODES:
            node = stack.pop()
            if node in self._seen_nodes:
                continue
            self._seen_nodes.add(node)
            old += gradients.sequence(node) < self._old
            self._own_node(node, graph, is_scalar)
            stack.extend(gradients.before(node))
        if old:
            # Of a very long container only the latest entries were visited.
            longest = max((step.size for step in hold.path() if step.how == "entry"), default=0)
            old = int(old * max(longest / MOST_ENTRIES, 1))
            edge = edge_of_graph(hold)
            before, other, keys = self.nodes.get(edge, (0, None, []))
            if storage is not None and len(keys) < 64:
                keys.append(storage._cdata)
            self.nodes[edge] = (before + old, owner_of_graphs(graph, is_scalar, other), keys)

    def _own_node(self, node: Any, graph: Hold, is_scalar: bool) -> None:
        gradients = self._gradients
        leaf = gradients.leaf(node)
        if leaf is not None:
            is_parameter = self._is_parameter(leaf)
            self._own(leaf, kinds.PARAMETER if is_parameter else kinds.INPUT, graph, is_scalar)
            gradient = gradients.of(leaf) if id(leaf) not in self._passed_by else None
            self._own(gradient, kinds.GRADIENT_OF_PARAMETER if is_parameter else kinds.GRADIENT_OF_INPUT, graph, is_scalar)
            root = gradients.node(gradient) if gradient is not None else None
            if gradient is not None and root is not None:
                self._behind_leaves.append((gradient, root, Hold(graph, "grad")))
        for name, packed, unpack in gradients.saved(node):
            self._own(packed, kinds.ACTIVATION, graph, is_scalar)
            if unpack is not None:
                step = Hold(graph, "saved", name, gradients.name(node))
                self._walk.add(packed, step)
                self._walk.add(unpack, step)
        if issubclass(type(node), torch.autograd.function.BackwardCFunction):
            self._walk.attributes(node, graph)


def _shape(tensor: torch.Tensor) -> tuple[int, ...] | None:
    """None of a class that may answer that itself, by code of the program's, and of tensors that have no one shape (nested
    ones)."""
    kind = type(tensor)
    if kind is not torch.Tensor and kind is not torch.nn.Parameter and dispatches(kind):
        return None
    try:
        return tuple(_SHAPE(tensor))
    except RuntimeError as error:
        if not is_an_answer(error):
            raise
        return None


def _part(tensor: torch.Tensor, shape: tuple[int, ...]) -> Part:
    size = _ELEMENT_SIZE(tensor)
    try:
        is_dense = _IS_CONTIGUOUS(tensor)
    except RuntimeError as error:
        if not is_an_answer(error):
            raise
        is_dense = False
    return Part(_OFFSET(tensor) * size, math.prod(shape) * size, is_dense)


def _values(names: Any) -> list[torch.Tensor]:
    """The tensors of a module's dictionary, which a program may have replaced by anything."""
    return [one for one in names.values() if issubclass(type(one), torch.Tensor)] if type(names) is dict else []
