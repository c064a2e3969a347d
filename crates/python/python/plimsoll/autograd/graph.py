"""The graph that backward runs over: its nodes, and hooks on what it saves."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

from .._plimsoll import Node as Node
from .._plimsoll import Tensor, _forbid_saved_tensors_hooks, _SavedTensorsScope
from .._plimsoll import RemovableHandle, _register_multi_grad_hook
from .._plimsoll import _graph_dot as graph_dot
from .._plimsoll import _graph_text as graph_text
from ._mutation import allow_mutation_on_saved_tensors as allow_mutation_on_saved_tensors


class SavedTensor:
    """What `_raw_saved_self` and its kin of a node give: a box with the tensor that the node saved, or with None."""

    def __init__(self, data: Tensor | None) -> None:
        #: The tensor.
        self.data = data

    def register_hooks(self, pack_hook: Callable[..., Any], unpack_hook: Callable[..., Any]) -> None:
        """Refused: what is saved goes through the hooks of `saved_tensors_hooks` while it is recorded."""
        raise NotImplementedError(
            "SavedTensor.register_hooks: hooks on one tensor that a node saved already are not here: record it in "
            "autograd.graph.saved_tensors_hooks(pack_hook, unpack_hook)"
        )


class GradientEdge(NamedTuple):
    """Where the gradient of a tensor goes: a node, and which output of it."""

    node: Node
    output_nr: int
    # A node that keeps the graph alive where `node` does not. Here it always does.
    ownership_token: Node | None = None


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """Where the gradient of `tensor` goes. It stands for the tensor in `backward` and `grad`, without holding its bytes."""
    if not tensor.requires_grad:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    node, output = tensor._gradient_edge()
    return GradientEdge(node, output)


def register_multi_grad_hook(
    tensors: Sequence[Tensor], fn: Callable[[Any], None], *, mode: Literal["all", "any"] = "all"
) -> RemovableHandle:
    """Calls `fn` once in each backward: with a list of the gradients of `tensors` when all that it computes are there, or,
    in the mode `any`, with the first of them."""
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    return _register_multi_grad_hook(list(tensors), fn, mode == "any")


def increment_version(tensor: Tensor | Iterable[Tensor]) -> None:
    """Says that tensors were written to where nobody could see it: a backward that saved one before refuses it.

    >>> import plimsoll
    >>> x = plimsoll.ones(2)
    >>> plimsoll.autograd.graph.increment_version(x)
    >>> x._version
    1
    """
    for one in (tensor,) if isinstance(tensor, Tensor) else tensor:
        if not one.is_inference():
            # A write to no element of it counts as one.
            one.detach().unsqueeze(0)[:0].zero_()


class saved_tensors_hooks:
    """While in force, what operations of this thread save for backward is what `pack_hook` makes of it; backward gets
    it back through `unpack_hook`."""

    def __init__(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]) -> None:
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook
        self._scopes: list[_SavedTensorsScope] = []

    def __enter__(self) -> None:
        self._scopes.append(_SavedTensorsScope(self.pack_hook, self.unpack_hook))

    def __exit__(self, *failure: object) -> None:
        self._scopes.pop().leave()


class save_on_cpu(saved_tensors_hooks):
    """Keeps what operations save for backward in the host's memory; backward brings it back to where it was."""

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        def pack(tensor: Tensor) -> tuple[Any, Tensor]:
            # What is on the host already is copied too, since nobody would notice a later write to it.
            host = tensor.to("cpu", copy=True)
            return tensor.device, host.pin_memory() if pin_memory else host

        def unpack(packed: tuple[Any, Tensor]) -> Tensor:
            device, host = packed
            return host.to(device, non_blocking=pin_memory)

        super().__init__(pack, unpack)


@contextlib.contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """While in force, using `saved_tensors_hooks` raises a RuntimeError with this message."""
    before = _forbid_saved_tensors_hooks(error_message)
    try:
        yield
    finally:
        _forbid_saved_tensors_hooks(before)
