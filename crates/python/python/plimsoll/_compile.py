"""`compile`: nothing is compiled here."""

from __future__ import annotations

import functools
import warnings
from typing import Any

_said = False


def say_once(stacklevel: int) -> None:
    """Warns that nothing is compiled, the first time."""
    global _said
    if not _said:
        _said = True
        warnings.warn("compile: nothing is compiled in Plimsoll; the program runs unchanged", stacklevel=stacklevel)


def compile(
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: Any = "inductor",
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    disable: bool = False,
    **others: Any,
) -> Any:
    """Gives its argument back, and says once that it does: operations run one by one, with the same results.

    >>> import plimsoll as pm, warnings
    >>> warnings.simplefilter("ignore")
    >>> pm.compile(abs) is abs
    True
    """
    if not disable:
        say_once(stacklevel=3)
    if model is None:
        return functools.partial(compile, fullgraph=fullgraph, dynamic=dynamic, backend=backend, disable=disable)
    return model
