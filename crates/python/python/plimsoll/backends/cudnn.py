"""Convolutions by cuDNN, where it is found: `enabled`, `allow_tf32`, `deterministic` and `benchmark` are read and set as
attributes of this module. Algorithms give the same bits from run to run whatever `deterministic` says, and are chosen by
the library's heuristics whatever `benchmark` says.
"""

from __future__ import annotations

import contextlib
import sys
import types
from collections.abc import Iterator

from .._plimsoll import _backend_switch, _cudnn_version, _set_backend_switch

enabled: bool
allow_tf32: bool
deterministic: bool
benchmark: bool

_SWITCHES = ("enabled", "allow_tf32", "deterministic", "benchmark")


class _Cudnn(types.ModuleType):
    """This module: what it has no variable for, it asks the compiled module."""

    def __getattr__(self, name: str) -> bool:
        if name in _SWITCHES:
            return _backend_switch(f"cudnn.{name}")
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")

    def __setattr__(self, name: str, value: object) -> None:
        if name not in _SWITCHES:
            super().__setattr__(name, value)
        elif isinstance(value, bool):
            _set_backend_switch(f"cudnn.{name}", value)
        else:
            raise TypeError(f"backends.cudnn.{name} is True or False, not {value!r}")


sys.modules[__name__].__class__ = _Cudnn


def is_available() -> bool:
    """Whether the library is found."""
    return version() is not None


def version() -> int | None:
    """Its version, 91400 for 9.14.0."""
    return _cudnn_version()


@contextlib.contextmanager
def flags(
    enabled: bool = False,
    benchmark: bool = False,
    deterministic: bool = False,
    allow_tf32: bool = True,
) -> Iterator[None]:
    """These settings inside, the former ones after it. The defaults are PyTorch's."""
    wanted = {
        "enabled": enabled,
        "benchmark": benchmark,
        "deterministic": deterministic,
        "allow_tf32": allow_tf32,
    }
    former = {name: _set_backend_switch(f"cudnn.{name}", on) for name, on in wanted.items()}
    try:
        yield
    finally:
        for name, on in former.items():
            _set_backend_switch(f"cudnn.{name}", on)
