"""Regions by name: the strategy `file_system`. Each message has a name of its own for the region, so that taking it is one opening and
one removal, and nothing counts who uses what. A region that was sent keeps a name of its own beside: a file of the system's memory
that has none can be given none again. Names that nobody takes are removed by Python's resource tracker when the program has ended,
however it did."""

from __future__ import annotations

import os
import secrets
import weakref
from multiprocessing import resource_tracker

from ._regions import SHARED_FOLDER, Region

#: The regions that have a name of their own here.
_named: weakref.WeakSet[Region] = weakref.WeakSet()


def give(region: Region) -> str | None:
    """A new name for the region, for one who takes it; None if its file can have none."""
    try:
        if region not in _named:
            own = _link(region.fd)
            weakref.finalize(region, _remove, own, os.getpid())
            _named.add(region)
        return _link(region.fd)
    except OSError:
        return None


def take(name: str) -> int:
    """A descriptor of the file of that name, which is gone then."""
    fd = os.open(f"{SHARED_FOLDER}/{name}", os.O_RDWR | os.O_CLOEXEC)
    _remove(name, os.getpid())
    return fd


def _link(fd: int) -> str:
    name = f"plimsoll_{os.getpid()}_{secrets.token_hex(8)}"
    # Python follows the link to the file only if it is given a folder, of which a whole path makes no use.
    os.link(f"/proc/self/fd/{fd}", f"{SHARED_FOLDER}/{name}", src_dir_fd=fd, follow_symlinks=True)
    resource_tracker.register(f"/{name}", "shared_memory")
    return name


def _remove(name: str, process: int) -> None:
    if process == os.getpid():  # A child that was forked has a copy of the region, not of the name.
        os.unlink(f"{SHARED_FOLDER}/{name}")
        resource_tracker.unregister(f"/{name}", "shared_memory")
