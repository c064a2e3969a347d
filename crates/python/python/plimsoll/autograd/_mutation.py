"""Writes to tensors that backward still needs, allowed: what a write would spoil is copied first. Operations tell of
their writes (`_Writes`), and of what they save (`_SavedTensorsScope`), both on this thread."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Iterator
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary

from .. import _plimsoll
from .._plimsoll import Tensor, _SavedTensorsScope


class _Handle:
    """Stands in the graph for a saved tensor; who saves the same elements again gets the same one."""

    __slots__ = ("__weakref__",)


def _memory(tensor: Tensor) -> tuple[int, int]:
    """A storage, and what was written to it so far."""
    return tensor.untyped_storage()._cdata, tensor._version


def _elements(tensor: Tensor) -> tuple[Any, ...]:
    return *_memory(tensor), tensor.dtype, tensor.storage_offset(), tuple(tensor.shape), tensor.stride()


class _AllowMutationOnSavedContext:
    """What is saved, as it is or copied, until the graph lets go of it."""

    def __init__(self) -> None:
        self.cloned: WeakKeyDictionary[_Handle, Tensor] = WeakKeyDictionary()
        self.original: WeakKeyDictionary[_Handle, Tensor] = WeakKeyDictionary()
        # PyTorch's names: which elements have a handle, and which elements a storage has.
        self.tid_to_weakhandle: WeakValueDictionary[tuple[Any, ...], _Handle] = WeakValueDictionary()
        self.sid_to_tid: defaultdict[tuple[int, int], set[tuple[Any, ...]]] = defaultdict(set)
        self._is_open = True

    def clear(self) -> None:
        """Lets go of everything."""
        self._is_open = False
        for kept in (self.cloned, self.original, self.tid_to_weakhandle, self.sid_to_tid):
            kept.clear()

    def _pack(self, tensor: Tensor) -> _Handle:
        elements = _elements(tensor)
        handle = self.tid_to_weakhandle.get(elements)
        if handle is None:
            handle = self.tid_to_weakhandle[elements] = _Handle()
            # Without its place in the graph, which leads back to the handle; backward puts it there again.
            self.original[handle] = tensor.detach()
            self.sid_to_tid[_memory(tensor)].add(elements)
        return handle

    def _unpack(self, handle: _Handle) -> Tensor:
        if not self._is_open:
            raise AssertionError(
                "Trying to backward outside of the 'allow_mutation_on_saved_tensors' context in which the graph was "
                "originally recorded."
            )
        copied = self.cloned.get(handle)
        return self.original[handle] if copied is None else copied

    def _before_write(self, tensor: Tensor) -> None:
        for elements in self.sid_to_tid.pop(_memory(tensor), ()):
            # Other memory may come to lie there, which must not find the handle.
            handle = self.tid_to_weakhandle.pop(elements, None)
            if handle is not None:
                self.cloned[handle] = self.original.pop(handle).clone()


_open: list[_AllowMutationOnSavedContext] = []


@contextlib.contextmanager
def allow_mutation_on_saved_tensors() -> Iterator[_AllowMutationOnSavedContext]:
    """While in force, tensors that backward needs may be written in place by this thread: they are copied ahead of the
    write, once. Backward runs inside too.

    >>> import plimsoll as pm
    >>> a = pm.ones(2, requires_grad=True)
    >>> with pm.autograd.graph.allow_mutation_on_saved_tensors():
    ...     b = a.clone()
    ...     out = (b**2).sum()
    ...     _ = b.sin_()
    ...     out.backward()
    >>> a.grad
    tensor([2., 2.])
    """
    if _open:
        raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
    context = _AllowMutationOnSavedContext()
    with contextlib.ExitStack() as stack:
        writes = _plimsoll._Writes(context._before_write)
        stack.callback(writes.leave)
        saves = _SavedTensorsScope(context._pack, context._unpack)
        stack.callback(saves.leave)
        _open.append(context)
        stack.callback(_open.remove, context)
        stack.callback(context.clear)
        yield context
