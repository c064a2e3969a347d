"""Classes of several results with names, such as what `max` along a dimension gives: tuples that print as PyTorch's do."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence
from typing import Any

from ._plimsoll import _namespace


def make(name: str, fields: Sequence[str]) -> Any:
    """The class of an operation's results. `function.rs` asks for it at the first call."""

    def __repr__(self: Any) -> str:
        listed = ",\n".join(f"{field}={value!r}" for field, value in zip(fields, self, strict=True))
        return f"{_namespace()}.return_types.{name}(\n{listed})"

    made = namedtuple(name, fields)  # type: ignore[misc]
    made.__repr__ = __repr__  # type: ignore[method-assign]
    return made
