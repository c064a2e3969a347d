"""`%load_ext plimsoll.watch` and `%%watch`: a notebook's cell under the watch, and the report below it."""

from __future__ import annotations

import sys
from typing import Any

from ._watch import Watch


def watch_cell(shell: Any, line: str, cell: str) -> Watch:
    """Runs the cell and writes the report; words after `%%watch` are lines and names to exclude."""
    watched = Watch(exclude=line.split())
    with watched:
        shell.run_cell(cell)
    sys.stdout.write(watched.text())
    return watched


def load_ipython_extension(shell: Any) -> None:
    """What `%load_ext plimsoll.watch` calls."""

    def watch(line: str, cell: str) -> None:
        """Runs the cell and says what grows in it from step to step. `%%watch replay train.py:17` excludes a name and
        a line."""
        watch_cell(shell, line, cell)

    shell.register_magic_function(watch, magic_kind="cell", magic_name="watch")


def unload_ipython_extension(shell: Any) -> None:
    """What `%unload_ext plimsoll.watch` calls."""
    shell.magics_manager.magics["cell"].pop("watch", None)
