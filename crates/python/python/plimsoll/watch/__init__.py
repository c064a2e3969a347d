"""Says of a running PyTorch program what grows from step to step: which line makes it, what kind it is, and who holds
it.

From the shell: `plimsoll watch train.py`, or `python -m plimsoll.watch train.py`. In a program:

    with plimsoll.watch() as watched:
        train()
    assert not watched.verdicts

It watches PyTorch's tensors, not Plimsoll's, and needs neither the compiled module nor, until a watch begins,
PyTorch: the folder alone runs too (`python .../plimsoll/watch train.py`). `_session.py` is where a watch happens.
"""

from __future__ import annotations

import sys
import types

from typing import Any, Iterable

from ._checker import LeakChecker as LeakChecker
from ._checker import LeakWarning as LeakWarning
from ._checker import check_leaks as check_leaks
from ._findings import Finding as Finding
from ._magic import load_ipython_extension as load_ipython_extension
from ._magic import unload_ipython_extension as unload_ipython_extension
from ._watch import LeakError as LeakError
from ._watch import Watch as Watch
from ._watch import assert_no_leak as assert_no_leak
from ._watch import epoch as epoch
from ._watch import step as step
from ._watch import watch as watch

__all__ = [
    "Finding", "LeakChecker", "LeakError", "LeakWarning", "Watch", "assert_no_leak", "check_leaks", "epoch", "step",
    "watch",
]  # fmt: skip


class _CallableModule(types.ModuleType):
    """`plimsoll.watch` is the package and, called, a watch."""

    def __call__(self, *, error_on_leak: bool = False, exclude: Iterable[Any] = (), live: bool = False) -> Watch:
        return watch(error_on_leak=error_on_leak, exclude=exclude, live=live)


sys.modules[__name__].__class__ = _CallableModule
