"""Memory that processes share: regions of it, and tensors that lie in them.

A region is a file of the system's memory without a name (`memfd_create`), so that none is left behind however a process ends, and the
size of `/dev/shm` does not matter. Processes hand each other its descriptor and map the same bytes. Tensors over a region are foreign
memory to the ledger: they are in `memory_external`, in no other figure. How tensors are handed over: `reductions.py` for queues and
arguments, `utils/data/_messages.py` for a loader's batches.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import tempfile
import weakref
from typing import Any

from .. import _plimsoll
from .._plimsoll import Tensor, UntypedStorage
from . import _strategy

_libc = ctypes.CDLL(None, use_errno=True)
_map = _libc.mmap
_map.restype = ctypes.c_void_p
_map.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long)
_unmap = _libc.munmap
_unmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
#: Where the system keeps shared memory that has names.
SHARED_FOLDER = "/dev/shm"
_FAILED = ctypes.c_void_p(-1).value

#: The regions that are mapped here, by the address of their first byte.
_mapped: weakref.WeakValueDictionary[int, Region] = weakref.WeakValueDictionary()


class Region:
    """Shared memory, mapped for as long as this lives. Python's `mmap` would keep a descriptor of its own for each: a program that
    keeps a thousand batches would run out of them."""

    __slots__ = ("__weakref__", "_close", "_unmap", "address", "buffer", "fd", "nbytes")

    def __init__(self, fd: int, nbytes: int, *, keep_fd: bool = True) -> None:
        """Maps the file of a descriptor, which is this region's from now on; it is kept if the region is to be handed on."""
        self._unmap, self._close = _unmap, os.close  # A module's names may be gone before its last objects are.
        self.address, self.fd = 0, fd
        self.nbytes = nbytes
        flags = mmap.MAP_SHARED | getattr(mmap, "MAP_POPULATE", 0)
        address = _map(None, nbytes, mmap.PROT_READ | mmap.PROT_WRITE, flags, fd, 0)
        if address == _FAILED:
            problem = ctypes.get_errno()
            self.close_fd()
            raise OSError(problem, f"{os.strerror(problem)}: {nbytes} bytes of shared memory cannot be mapped")
        self.address = address
        if not keep_fd:
            self.close_fd()
        _mapped[address] = self

    def close_fd(self) -> None:
        """Closes the descriptor: what is mapped stays, and cannot be handed on."""
        fd, self.fd = self.fd, -1
        if fd >= 0:
            self._close(fd)

    def __del__(self) -> None:
        if self.address:
            self._unmap(self.address, self.nbytes)
        self.close_fd()

    def view(self) -> memoryview:
        """Its bytes, which keep it alive."""
        array = (ctypes.c_char * self.nbytes).from_address(self.address)
        array.region = self  # type: ignore[attr-defined]
        return memoryview(array).cast("B")


def _new_file() -> int:
    """The descriptor of a new file of memory. It has no name; it can get one only if it lies in the folder of those that have."""
    if _strategy.get_sharing_strategy() == "file_system" and hasattr(os, "O_TMPFILE") and os.path.isdir(SHARED_FOLDER):
        return os.open(SHARED_FOLDER, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
    if hasattr(os, "memfd_create"):
        return os.memfd_create("plimsoll", os.MFD_CLOEXEC)
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def new_region(nbytes: int) -> Region:
    """A new region of zeros."""
    fd = _new_file()
    try:
        os.ftruncate(fd, nbytes)
        if hasattr(os, "posix_fallocate"):
            # Where there is no room this is an error, and not a signal at the first write.
            os.posix_fallocate(fd, 0, nbytes)
    except BaseException:
        os.close(fd)
        raise
    return Region(fd, nbytes)


def region_at(address: int) -> Region | None:
    """The region that an address lies in."""
    exact = _mapped.get(address)
    if exact is not None:
        return exact
    return next((r for r in list(_mapped.values()) if r.address <= address < r.address + r.nbytes), None)


def region_of(storage: UntypedStorage) -> Region | None:
    """The region that memory of the host lies in."""
    if not _mapped or storage.device.type != "cpu":
        return None
    address = storage._foreign_address()
    return None if address is None else region_at(address)


def tensor_at(owner: Any, address: int, dtype: _plimsoll.dtype, shape: Any, stride: Any) -> Tensor:
    """A tensor over the elements at an address, which are there for as long as `owner` is; strides count elements."""
    return _plimsoll._tensor_at(owner, address, dtype, shape, stride)


def shared_empty(shape: Any, dtype: _plimsoll.dtype) -> Tensor:
    """A tensor of zeros in a region of its own."""
    strides, count = [], 1
    for size in reversed(shape):
        strides.append(count)
        count *= max(size, 1)
    region = new_region(max(count * dtype.itemsize, 1))
    return tensor_at(region, region.address, dtype, shape, strides[::-1])


def share(storage: UntypedStorage) -> Region:
    """The region that memory lies in, which can be handed on; moves the memory into a new one if it is in none, with every
    tensor that shares it."""
    region = region_of(storage)
    if region is not None and region.fd >= 0:
        return region
    region = new_region(max(storage.nbytes(), 1))
    storage._move_to_region(region)
    return region
