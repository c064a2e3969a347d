"""Messages over a pair of sockets, each with the descriptors of its regions. One end is a loader's, the other a worker's.

Neither waits for the other to read: the loader keeps what the socket has no room for (`flush`), and a worker's messages are small.
"""

from __future__ import annotations

import array
import os
import socket
import struct
import weakref
from collections import deque
from typing import Any

from ...multiprocessing._regions import Region
from ._messages import DESCRIPTORS, Message

#: Before a message: bytes that follow, bytes of it that lie at the end of the last region instead, regions, the epoch, the step.
_HEADER = struct.Struct("<QQIqq")
_SIZE = struct.Struct("<Q")
_READ_BYTES = 256 << 10
_ANCILLARY_BYTES = socket.CMSG_SPACE(DESCRIPTORS * array.array("i").itemsize)

#: The loader's ends. A child that is forked for anything else must not keep them: a worker ends when its loader's end is gone.
_loader_ends: weakref.WeakSet[Pipe] = weakref.WeakSet()


class Pipe:
    """One end."""

    def __init__(self, end: socket.socket) -> None:
        self._socket = end
        # A program may have set a time limit for all its sockets (`socket.setdefaulttimeout`).
        end.setblocking(True)
        self._arrived = bytearray()
        self._descriptors: deque[int] = deque()
        self._unsent: deque[memoryview] = deque()
        self.is_over = False

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, epoch: int, step: int, message: Message) -> None:
        """Sends, and waits for room."""
        parts, descriptors = _framed(epoch, step, message)
        sent = self._socket.sendmsg(parts, descriptors)
        whole = sum(map(len, parts))
        if sent < whole:
            self._socket.sendall(memoryview(b"".join(parts))[sent:])

    def send_later(self, epoch: int, step: int, message: Message) -> None:
        """Sends as much as there is room for, and the rest by `flush`. The message has no regions."""
        parts, _ = _framed(epoch, step, message)
        self._unsent.append(memoryview(b"".join(parts)))
        self.flush()

    def flush(self) -> None:
        """Sends what was kept, as far as there is room."""
        while self._unsent:
            first = self._unsent[0]
            try:
                sent = self._socket.send(first, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return
            except OSError:  # The worker is gone, which reading tells.
                self._unsent.clear()
                return
            if sent < len(first):
                self._unsent[0] = first[sent:]
            else:
                self._unsent.popleft()

    @property
    def is_waiting(self) -> bool:
        """Whether something is kept to be sent."""
        return bool(self._unsent)

    def receive(self) -> list[tuple[int, int, Message]]:
        """The messages that have arrived, with epoch and step; `is_over` once the other end is gone."""
        while not self.is_over:
            try:
                data, ancillary, flags, _ = self._socket.recvmsg(_READ_BYTES, _ANCILLARY_BYTES, socket.MSG_DONTWAIT | _CLOSE_ON_EXEC)
            except BlockingIOError:
                break
            except ConnectionError:
                data, ancillary, flags = b"", [], 0
            for _, _, packed in ancillary:
                self._descriptors.extend(array.array("i", packed[: len(packed) // 4 * 4]))
            if flags & socket.MSG_CTRUNC:
                raise RuntimeError(
                    "Too many open files. Communication with the workers is no longer possible. Raise the limit with `ulimit -n`"
                )
            self.is_over = not data
            self._arrived += data
            if len(data) < _READ_BYTES:
                break
        return self._parsed()

    def _parsed(self) -> list[tuple[int, int, Message]]:
        messages = []
        arrived, place = self._arrived, 0
        while len(arrived) - place >= _HEADER.size:
            inline, outside, count, epoch, step = _HEADER.unpack_from(arrived, place)
            start = place + _HEADER.size + count * _SIZE.size
            if len(arrived) < start + inline:
                break
            sizes = [_SIZE.unpack_from(arrived, place + _HEADER.size + n * _SIZE.size)[0] for n in range(count)]
            regions = [Region(self._descriptors.popleft(), nbytes, keep_fd=False) for nbytes in sizes]
            body = regions[-1].view()[-outside:] if outside else bytes(memoryview(arrived)[start : start + inline])
            messages.append((epoch, step, Message(body, regions)))
            place = start + inline
        if place:
            del arrived[:place]
        return messages

    def close(self) -> None:
        """Ends the conversation: the other end hears of it."""
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.abandon()

    def abandon(self) -> None:
        """Lets go of this end without a word."""
        self._socket.close()
        while self._descriptors:
            os.close(self._descriptors.popleft())


_CLOSE_ON_EXEC = getattr(socket, "MSG_CMSG_CLOEXEC", 0)


def _framed(epoch: int, step: int, message: Message) -> tuple[list[Any], list[Any]]:
    body, regions = message.body, message.regions
    outside = len(body) if message.lies_in_region else 0
    inline = 0 if outside else len(body)
    head = _HEADER.pack(inline, outside, len(regions), epoch, step) + b"".join(_SIZE.pack(r.nbytes) for r in regions)
    if not regions:
        return [head, body], []
    descriptors = array.array("i", [region.fd for region in regions])
    return [head] if outside else [head, body], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, descriptors)]


def pair() -> tuple[Pipe, socket.socket]:
    """A loader's end, and the socket of a worker's."""
    ours, theirs = socket.socketpair()
    end = Pipe(ours)
    _loader_ends.add(end)
    return end, theirs


def _forget_in_child() -> None:
    for end in list(_loader_ends):
        end.abandon()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_in_child)
