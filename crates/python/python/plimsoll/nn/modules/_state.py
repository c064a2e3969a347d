"""What `load_state_dict` finds, and how it says so."""

from __future__ import annotations

from collections import namedtuple
from typing import Any


class _IncompatibleKeys(namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    """Names that the module has and the state does not, and the other way round."""

    __slots__ = ()

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return super().__repr__()

    __str__ = __repr__


def told(module: Any, problems: list[str]) -> str:
    """All problems of a load in one message."""
    return "Error(s) in loading state_dict for {}:\n\t{}".format(type(module).__name__, "\n\t".join(problems))


def listed(kind: str, names: list[str]) -> str:
    """Names of one kind."""
    return "{} key(s) in state_dict: {}. ".format(kind, ", ".join(f'"{name}"' for name in names))
