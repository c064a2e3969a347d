"""The one place that reads gradients, graphs and what they have saved, of PyTorch's tensors; everybody else asks it. It reads
at moments that are its own (`_undisturbed.py`) and says of the whole whether anything had to be left out. It runs none of the
program's code: a subclass's properties are passed by, and nothing that was saved is unpacked."""

from __future__ import annotations

import sys
import types
from types import FrameType, TracebackType
from typing import Any, Iterator

import torch

from ._errors import is_an_answer, is_given_a_frame
from ._undisturbed import PATIENCE, Moment

_GRAD = torch.Tensor.grad.__get__
_NODE = torch.Tensor.grad_fn.__get__
_IS_LEAF = torch.Tensor.is_leaf.__get__
_REQUIRES = torch.Tensor.requires_grad.__get__
_IS_VIEW = torch.Tensor._is_view
_RETAINS = torch.Tensor.retains_grad.__get__
# A node of PyTorch's own that puts a gradient into a leaf: only it has the leaf as `variable`.
_ACCUMULATES = "AccumulateGrad"
# Nodes of functions that programs define. What these set on their context is on the node, and hides methods of
# the same name: those are asked of the type.
_OWN_FUNCTIONS = torch.autograd.function.BackwardCFunction
# Whether what is saved can be read as it is saved.
_TELLS_DATA = hasattr(torch._C._autograd.SavedTensor, "data")
_saved_names: dict[type, list[str]] = {}
_NAMES_OF_CLASS = type.__dict__["__dict__"]


def is_node(value: Any) -> bool:
    """Whether it is a node of a graph: of a function that a program defines, or of PyTorch's own, whose class is C++'s."""
    kind = type(value)
    if issubclass(kind, _OWN_FUNCTIONS):
        return True
    return type(_NAMES_OF_CLASS.__get__(kind).get("next_functions")) is types.GetSetDescriptorType


class Gradients:
    """A block in which gradients and graphs are read. What may not be read at the moment is answered as if it were not there,
    and `is_whole` is false from then on."""

    def __init__(self, patience: float = PATIENCE) -> None:
        self.is_whole = True
        self._moment = Moment(patience)

    def __enter__(self) -> Gradients:
        try:
            self._moment.__enter__()
        except BaseException:  # of a handler of the program, when the moment had begun
            self._moment.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self._moment.__exit__(kind, error, traceback)

    @property
    def waited(self) -> float:
        """The seconds until the moment came."""
        return self._moment.waited

    def _may_read(self) -> bool:
        self.is_whole = self.is_whole and self._moment.may_read()
        return self.is_whole

    def _ask(self, question: Any, tensor: torch.Tensor, otherwise: Any) -> Any:
        """All of these ask for the node that made the tensor."""
        if not self._may_read():
            return otherwise
        try:
            return question(tensor)
        except RuntimeError as error:  # a view that was written to where that is not allowed: PyTorch refuses to tell
            if not is_an_answer(error):
                raise
            return otherwise

    def is_leaf(self, tensor: torch.Tensor) -> bool:
        """Whether the program asks for the gradient of the tensor itself."""
        return bool(_REQUIRES(tensor) and self._ask(_IS_LEAF, tensor, False))

    def of(self, tensor: torch.Tensor) -> torch.Tensor | None:
        """The gradient that a tensor has."""
        if not _REQUIRES(tensor) or not (self.is_leaf(tensor) or self._ask(_RETAINS, tensor, False)):
            return None
        return self._ask(_GRAD, tensor, None)

    def node(self, tensor: torch.Tensor) -> Any:
        """The node that made a tensor. A view of what was written to meanwhile says that it takes no gradients until it is asked
        for its node."""
        return self._ask(_NODE, tensor, None) if _REQUIRES(tensor) or _IS_VIEW(tensor) else None

    def is_whole_node(self, node: Any) -> bool:
        """Whether it is in a graph: a function's context may be left of one that is gone, or be of one that runs."""
        try:
            return self._may_read() and type(node)._sequence_nr(node) >= 0 and node.next_functions is not None
        except RuntimeError as error:
            if not is_an_answer(error):
                raise
            return False

    def sequence(self, node: Any) -> int:
        """How early a node was made."""
        return type(node)._sequence_nr(node) if self._may_read() else 0

    def name(self, node: Any) -> str:
        return type(node).name(node)  # type: ignore[no-any-return]

    def before(self, node: Any) -> list[Any]:
        """The nodes whose results a node was computed of."""
        return [one for one, _ in node.next_functions if one is not None] if self._may_read() else []

    def leaf(self, node: Any) -> torch.Tensor | None:
        """The leaf whose gradient a node adds to."""
        if type(node).__name__ != _ACCUMULATES or issubclass(type(node), _OWN_FUNCTIONS) or not self._may_read():
            return None
        return node.variable

    def saved(self, node: Any) -> Iterator[tuple[str, Any, Any]]:
        """What a node has saved: a name, the tensor or what a hook packed, and the hook that unpacks it, which is not called."""
        kind = type(node)
        if issubclass(kind, _OWN_FUNCTIONS):
            names = ["_raw_saved_tensors"]
        else:
            known = _saved_names.get(kind)
            names = known if known is not None else [name for name in dir(kind) if name.startswith("_raw_saved_")]
            _saved_names[kind] = names
        for name in names:
            if not self._may_read():
                return
            if not _TELLS_DATA:
                yield from _unpacked(node, "saved_tensors" if name == "_raw_saved_tensors" else name.removeprefix("_raw"))
                continue
            try:
                values = getattr(kind, name).__get__(node)
            except RuntimeError as error:  # freed by backward
                if not is_an_answer(error):
                    raise
                continue
            for value in values if isinstance(values, (tuple, list)) else (values,):
                if value is not None:
                    # `.data` is what was saved, or what a hook packed: it never unpacks.
                    yield name.removeprefix("_raw_"), value.data, value.unpack_hook


def _unpacked(node: Any, name: str) -> Iterator[tuple[str, Any, Any]]:
    """The same of an older PyTorch, which tells no data: what is saved has to be unpacked. A hook of the program's that would do
    that is stopped before its first line, so of what hooks have packed nothing is told."""
    if sys.getprofile() is not None:
        # The program's own would see it.
        return
    try:
        sys.setprofile(_stop)
        try:
            values = getattr(type(node), name).__get__(node)
        finally:
            # Before anything else is called, which would be stopped too.
            sys.setprofile(None)
    except _Stopped:  # packed
        return
    except RuntimeError as error:  # freed by backward, or written to since
        if not is_an_answer(error):
            raise
        return
    for value in values if isinstance(values, (tuple, list)) else (values,):
        if issubclass(type(value), torch.Tensor):
            yield name, value, None


class _Stopped(Exception):
    """Instead of a function of the program's."""


def _stop(frame: FrameType, event: str, _: Any) -> None:
    # Handlers of signals go on.
    if event == "call" and not is_given_a_frame(frame):
        raise _Stopped

