"""How tensors go to other processes by Python's own queues, pipes, pools and arguments: their memory is moved into a region that
processes share (`_regions.py`) and stays the sender's too, as in PyTorch. What is sent is where the region is found: a descriptor, or
a name (`_names.py`), as `get_sharing_strategy` says."""

from __future__ import annotations

import os
import weakref
from multiprocessing import reduction
from typing import Any

from .. import _plimsoll
from .._plimsoll import Tensor
from ..nn.parameter import Parameter
from . import _names, _strategy
from ._regions import Region, share, tensor_at

# Loaded early: a child that is forked while a queue's thread loads it would have half of it.
from multiprocessing import resource_sharer as resource_sharer  # isort: skip

#: Regions that came from or went to other processes, by the number of their file: what comes twice is mapped once.
_known: weakref.WeakValueDictionary[tuple[int, int], Region] = weakref.WeakValueDictionary()


def _file_number(fd: int) -> tuple[int, int]:
    status = os.fstat(fd)
    return status.st_ino, status.st_dev


def _region_from(fd: int, nbytes: int) -> Region:
    """The region of a descriptor, which is taken over."""
    number = _file_number(fd)
    region = _known.get(number)
    if region is not None:
        os.close(fd)
        return region
    region = _known[number] = Region(fd, nbytes)
    return region


def rebuild_region(handle: Any, nbytes: int) -> Region:
    """The region that another process told of by a descriptor."""
    return _region_from(handle.detach(), nbytes)


def rebuild_named_region(name: str, nbytes: int) -> Region:
    """The region that another process told of by a name."""
    return _region_from(_names.take(name), nbytes)


def reduce_region(region: Region) -> Any:
    """What another process finds the region by."""
    _known[_file_number(region.fd)] = region
    if _strategy.get_sharing_strategy() == "file_system":
        name = _names.give(region)
        if name is not None:
            return rebuild_named_region, (name, region.nbytes)
    return rebuild_region, (reduction.DupFd(region.fd), region.nbytes)


def rebuild_tensor(cls: type, region: Region | None, dtype: _plimsoll.dtype, metadata: tuple[Any, ...]) -> Tensor:
    """The tensor in a region; without elements it has none."""
    offset, size, stride, requires_grad, state = metadata
    if region is None:
        tensor = _plimsoll.empty(size, dtype=dtype)
    else:
        count = region.nbytes // dtype.itemsize
        whole = tensor_at(region, region.address, dtype, (count,), (1,))
        tensor = whole.as_strided(size, stride, offset)
    if issubclass(cls, Parameter):
        tensor = cls(tensor, requires_grad)
    else:
        tensor.requires_grad_(requires_grad)
    if state:
        tensor.__dict__.update(state)
    return tensor


def reduce_tensor(tensor: Tensor) -> Any:
    """What another process makes the same tensor of, over the same memory."""
    check_sendable(tensor)
    if tensor.device.type != "cpu":
        raise RuntimeError(
            f"multiprocessing: the memory of {tensor.device} is not shared between processes; send a copy on the host, tensor.cpu()"
        )
    storage = tensor.untyped_storage()
    region = share(storage) if storage.nbytes() else None
    metadata = (tensor.storage_offset(), tuple(tensor.shape), tensor.stride(), tensor.requires_grad, dict(tensor.__dict__))
    return rebuild_tensor, (type(tensor), region, tensor.dtype, metadata)


def check_sendable(tensor: Tensor) -> None:
    """Raises for a tensor whose graph would have to come along."""
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError(
            "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not support crossing process "
            "boundaries.  If you just want to transfer the data, call detach() on the tensor before serializing (e.g., putting it on "
            "the queue)."
        )


def init_reductions() -> None:
    """Tells Python's `multiprocessing` of them. Classes of the program's own go by value, as any pickle."""
    reduction.register(Region, reduce_region)
    for cls in (Tensor, Parameter):
        reduction.register(cls, reduce_tensor)
