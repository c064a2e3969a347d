"""New interpreters that a program starts by `multiprocessing` (`spawn`, `forkserver`): they find `torch` as the program does. What a
new interpreter reads first, before it imports the program's own module, is what `multiprocessing` tells it of its parent; calling
`begin` is made part of that. Forked processes have everything already."""

from __future__ import annotations

import importlib
import sys
from typing import Any

#: Before these `multiprocessing` does not start new interpreters.
STARTERS = ("multiprocessing.popen_spawn_posix", "multiprocessing.popen_spawn_win32", "multiprocessing.popen_forkserver")

#: Bytes of the stand-in that answers as `cuda` in this process, if there is one.
device_memory: int | None = None


class _Begin:
    """Read by a new interpreter, it is a call of `begin`."""

    def __reduce__(self) -> Any:
        return begin, (device_memory,)


def begin(memory: int | None) -> None:
    """Makes a new interpreter one of a program whose `torch` is Plimsoll."""
    global device_memory
    from .. import _plimsoll
    from ._finder import resolve_torch

    _plimsoll._print_as_torch(True)
    if memory and not _plimsoll._cuda_count():
        _plimsoll.stand_in(memory, as_cuda=True)
        device_memory = memory
    resolve_torch()


def take_along() -> None:
    """Has new interpreters call `begin` from now on."""
    spawn = importlib.import_module("multiprocessing.spawn")
    told = spawn.get_preparation_data
    if getattr(told, "takes_plimsoll_along", False):
        return

    def get_preparation_data(name: str) -> dict[str, Any]:
        return {"plimsoll": _Begin(), **told(name)}

    get_preparation_data.takes_plimsoll_along = True  # type: ignore[attr-defined]
    spawn.get_preparation_data = get_preparation_data  # type: ignore[attr-defined]


def take_along_if_started() -> None:
    """The same, if `multiprocessing` is ready to start new interpreters already; if not, the import of what does tells of it."""
    if any(name in sys.modules for name in STARTERS):
        take_along()
