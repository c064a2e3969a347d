"""`serve_live`: lets `plimsoll top` look at this program while it runs. The socket and what is said on it are the
compiled module's; this ends it with the program."""

from __future__ import annotations

import atexit
import os
import sys
from typing import Any

from . import _plimsoll

_serving: list[LiveServer] = []


class LiveServer:
    """A program that can be looked at, until `close()`, the end of a `with` block or the program's."""

    def __init__(self, name: str):
        self._server = _plimsoll._LiveServer(name)
        self._pid = os.getpid()

    @property
    def path(self) -> str | None:
        """The socket, which only the same user can open; None once closed."""
        return self._server.path

    def close(self) -> None:
        """Ends it and removes the socket. In a forked process, which is not looked at, it does nothing."""
        if os.getpid() == self._pid:
            self._server.close()
            if self in _serving:
                _serving.remove(self)

    def __enter__(self) -> LiveServer:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


def serve_live(name: str | None = None) -> LiveServer:
    """Lets `plimsoll top` look at this program: bytes by kind, module and line, what grows a step, and how long a step
    takes. `name` is what it is called there, the script's name unless given. Steps are those of `plimsoll.step()`.

        with plimsoll.serve_live():
            train()
    """
    script = os.path.basename(sys.argv[0]) if sys.argv and sys.argv[0] else "python"
    server = LiveServer(name or script)
    if not _serving:
        # Before the interpreter ends: a line is named by asking it.
        atexit.register(_close_all)
    _serving.append(server)
    return server


def _close_all() -> None:
    for server in list(_serving):
        server.close()
