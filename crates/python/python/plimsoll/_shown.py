"""How notebooks show what is here: text as it is printed, and tensors with what they are made of. A cell's memory is in
`_cell_memory.py`."""

from __future__ import annotations

from typing import Any

from . import _plimsoll
from ._plimsoll import Tensor

# Characters of a tensor that are shown at most, whatever the print options say.
MOST_CHARACTERS = 20_000


class ShownText(str):
    """Text of several lines, which a notebook shows as lines. To programs it is the text alone."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return as_printed(self)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))


def as_printed(text: str) -> str:
    """HTML of text in which columns stay below each other."""
    from html import escape

    return f'<pre style="line-height: 1.25; overflow-x: auto">{escape(text)}</pre>'


def size(count: int) -> str:
    """Bytes for people, as the runtime's own tables write them."""
    from .run._report import size as written

    return written(count)


def of_tensor(tensor: Tensor) -> str:
    """HTML of a tensor: its values as they are printed, and below them its shape, dtype, device and bytes."""
    text = repr(tensor)
    if len(text) > MOST_CHARACTERS:
        left = len(text) - MOST_CHARACTERS
        text = f"{text[:MOST_CHARACTERS]}\n… {left} more characters; set_printoptions(profile='default') shows the edges alone"
    storage = tensor.untyped_storage().nbytes()
    facts = [f"shape {tuple(tensor.shape)}", str(tensor.dtype), str(tensor.device), size(tensor.nbytes)]
    if storage != tensor.nbytes:
        facts.append(f"of a storage of {size(storage)}")
    if tensor.requires_grad:
        facts.append("requires grad")
    return as_printed(text) + f"<small>{' · '.join(facts)}</small>"


def memory_summary(device: Any = None, abbreviated: bool = False) -> ShownText:
    """PyTorch's table of a device's memory."""
    return ShownText(_plimsoll.memory_summary(device, abbreviated))


def memory_report(device: Any = None) -> ShownText:
    """A device's memory by kind, module and line, for people."""
    return ShownText(_plimsoll.memory_report(device))
