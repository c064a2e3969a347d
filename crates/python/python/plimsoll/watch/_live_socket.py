"""The socket on which a watched program tells its figures: where it lies, who may ask, what is said. It knows neither
PyTorch nor the watch; `_live.py` says what is told. `plimsoll top` asks.

The socket is `PID.sock` in `plimsoll` of the user's runtime folder (`XDG_RUNTIME_DIR`), or in `plimsoll-UID` of the
temporary folder. The folder has mode 0700 and the socket 0600, and who connects is checked to be the same user. A
request is a line of JSON, `{"live": 1, "ask": "figures"}`; the answer is a line of JSON, an object of figures or
`{"live": 1, "error": "..."}`; then the client may ask again. `live` is the version of this. Programs that run on
Plimsoll speak the same, from Rust: what an object of figures has is said in its crate `live`, file `figures.rs`.
"""

from __future__ import annotations

import json
import os
import socket
import stat
import struct
from typing import Any, Callable

VERSION = 1
# Bytes of a request.
MOST_ASKED = 4096


class CannotServe(Exception):
    """Why there is no socket."""


def folder() -> str:
    """The first folder that can be used, made if it is not there."""
    why = []
    for place in _places():
        try:
            try:
                os.mkdir(place, 0o700)
            except FileExistsError:
                pass
            _check(place)
            return place
        except (OSError, CannotServe) as error:
            why.append(str(error))
    raise CannotServe("; ".join(why))


def _places() -> list[str]:
    user = os.geteuid()
    runtime = [path for path in (os.environ.get("XDG_RUNTIME_DIR", ""), f"/run/user/{user}") if os.path.isdir(path)]
    temporary = [path for path in (os.environ.get("TMPDIR", ""), "/tmp") if os.path.isabs(path)]
    found = [os.path.join(path, "plimsoll") for path in runtime if os.path.isabs(path)]
    return found + [os.path.join(path, f"plimsoll-{user}") for path in temporary]


def _check(place: str) -> None:
    """Somebody else could put sockets into a folder that is not the user's alone."""
    facts = os.lstat(place)
    if not stat.S_ISDIR(facts.st_mode):
        raise CannotServe(f"{place!r} is no folder")
    if facts.st_uid != os.geteuid():
        raise CannotServe(f"{place!r} belongs to another user ({facts.st_uid})")
    if facts.st_mode & 0o077:
        raise CannotServe(f"others may enter {place!r} (mode {stat.S_IMODE(facts.st_mode):03o}); make it 700")


class LiveSocket:
    """Answers with what `figures` gives. `wait` is called again and again by the thread that serves, and does all of
    it; nobody else touches the sockets but `close` and, in a forked process, `leave`."""

    def __init__(self, figures: Callable[[], dict[str, Any]]):
        if not hasattr(socket, "AF_UNIX"):
            raise CannotServe("this system has no Unix sockets")
        self._figures = figures
        self._pid = os.getpid()
        self.path = os.path.join(folder(), f"{self._pid}.sock")
        early = os.path.join(os.path.dirname(self.path), f".{self._pid}.new")
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            if _is_answered(self.path):
                raise CannotServe(f"this process is served already, at {self.path!r}")
            if os.path.lexists(early):
                os.remove(early)
            # Under its name only when it listens: one that does not is taken for left behind.
            self._listener.bind(early)
            os.chmod(early, 0o600)
            self._listener.listen(8)
            os.rename(early, self.path)
        except (OSError, CannotServe) as error:
            self._listener.close()
            raise CannotServe(str(error)) from error
        self._clients: dict[socket.socket, bytes] = {}
        self._is_removed = False

    def wait(self, seconds: float) -> None:
        """Waits for somebody who asks, for at most so long, and answers."""
        # Here: it is imported when something is served, and no program's import order changes otherwise.
        import select

        poll = select.poll()
        for one in (self._listener, *self._clients):
            poll.register(one, select.POLLIN)
        ready = {descriptor for descriptor, _ in poll.poll(seconds * 1000)}
        for client in [one for one in self._clients if one.fileno() in ready]:
            try:
                is_open = self._read(client)
            except OSError:  # it went away, or does not read what it asked for
                is_open = False
            if not is_open:
                del self._clients[client]
                client.close()
        if self._listener.fileno() in ready:
            self._accept()

    def _accept(self) -> None:
        client, _ = self._listener.accept()
        if _user_of(client) != os.geteuid():
            client.close()
            return
        # Nobody who does not read an answer may stop the thread for long.
        client.settimeout(1.0)
        self._clients[client] = b""

    def _read(self, client: socket.socket) -> bool:
        """Answers the requests that have come; whether there may be more."""
        got = client.recv(MOST_ASKED)
        asked = self._clients[client] + got
        while b"\n" in asked:
            line, asked = asked.split(b"\n", 1)
            why = _refused(line)
            answer = {"live": VERSION, "error": why} if why else self._figures()
            client.sendall(json.dumps(answer).encode() + b"\n")
            if why:
                return False
        self._clients[client] = asked
        return bool(got) and len(asked) < MOST_ASKED

    def close(self) -> None:
        """Removes the socket, once: another may have its name afterwards. The thread that serves closes the rest when it
        comes by."""
        was_removed, self._is_removed = self._is_removed, True
        if os.getpid() == self._pid and not was_removed:
            try:
                os.remove(self.path)
            except OSError:  # somebody has cleaned up
                pass

    def leave(self) -> None:
        """In a forked process: lets go of its copies, so that the program's end closes the socket."""
        for one in (self._listener, *self._clients):
            one.close()


def _is_answered(path: str) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        return probe.connect_ex(path) == 0


def _refused(line: bytes) -> str | None:
    try:
        asked = json.loads(line)
        version, what = asked["live"], asked["ask"]
    except (ValueError, KeyError, TypeError):
        return "a request is a line of JSON that asks for figures"
    if version != VERSION:
        return f"this program speaks version {VERSION} of the protocol, not {version}"
    return None if what == "figures" else "nothing else can be asked for than figures"


def _user_of(client: socket.socket) -> int | None:
    """Who is at the other end. Elsewhere than on Linux the folder alone keeps others out."""
    if not hasattr(socket, "SO_PEERCRED"):
        return os.geteuid()
    try:
        facts = client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        return int(struct.unpack("3i", facts)[1])
    except OSError:
        return None
