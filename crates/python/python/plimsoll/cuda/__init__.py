"""GPUs under PyTorch's names: which there are, which is current, their memory, streams and random numbers. Where there
is none, a stand-in may answer (`stand_in(as_cuda=True)`, `plimsoll run`). `memory.py` and `streams.py` are the
larger parts."""

from __future__ import annotations

from typing import Any, NamedTuple

from .. import _plimsoll
from .._plimsoll import OutOfMemoryError as OutOfMemoryError
from .._plimsoll import Event as Event
from .._plimsoll import Stream as Stream
from . import amp as amp
from . import graphs as graphs
from . import memory as memory
from . import nvtx as nvtx
from . import random as random
from . import streams as streams
from ._graphed import make_graphed_callables as make_graphed_callables
from ._place import device_index as _device_index
from ._place import place as _place
from ._typed_classes import BFloat16Tensor as BFloat16Tensor
from ._typed_classes import BoolTensor as BoolTensor
from ._typed_classes import ByteTensor as ByteTensor
from ._typed_classes import CharTensor as CharTensor
from ._typed_classes import DoubleTensor as DoubleTensor
from ._typed_classes import FloatTensor as FloatTensor
from ._typed_classes import HalfTensor as HalfTensor
from ._typed_classes import IntTensor as IntTensor
from ._typed_classes import LongTensor as LongTensor
from ._typed_classes import ShortTensor as ShortTensor
from .graphs import CUDAGraph as CUDAGraph
from .graphs import graph as graph
from .graphs import graph_pool_handle as graph_pool_handle
from .graphs import is_current_stream_capturing as is_current_stream_capturing
from .memory import *  # noqa: F403
from .memory import __all__ as _memory_names
from .random import *  # noqa: F403
from .random import __all__ as _random_names
from .streams import StreamContext as StreamContext
from .streams import current_stream as current_stream
from .streams import default_stream as default_stream
from .streams import set_stream as set_stream
from .streams import stream as stream

__all__ = [
    *_memory_names,
    *_random_names,
    "CUDAGraph",
    "Event",
    "OutOfMemoryError",
    "Stream",
    "StreamContext",
    "amp",
    "can_device_access_peer",
    "current_device",
    "current_stream",
    "default_stream",
    "device",
    "device_count",
    "device_of",
    "get_arch_list",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "graph",
    "graph_pool_handle",
    "graphs",
    "init",
    "ipc_collect",
    "is_available",
    "is_bf16_supported",
    "is_current_stream_capturing",
    "is_initialized",
    "make_graphed_callables",
    "memory",
    "nvtx",
    "random",
    "set_device",
    "set_stream",
    "stream",
    "streams",
    "synchronize",
]


def is_available() -> bool:
    """Whether a tensor can be made on `cuda`.

    >>> import plimsoll as pm
    >>> pm.cuda.is_available() == (pm.cuda.device_count() > 0)
    True
    """
    return device_count() > 0


def device_count() -> int:
    """How many GPUs there are, or stand-ins that answer as one."""
    return _plimsoll._cuda_count()


def is_initialized() -> bool:
    """Whether a GPU has been opened."""
    return _plimsoll._cuda_is_initialized()


def init() -> None:
    """Opens the current GPU; the first tensor there would do so too."""
    _plimsoll._current_stream("cuda")


def current_device() -> int:
    """The number of the GPU that `cuda` means."""
    init()
    return _plimsoll._cuda_device()


def set_device(device: Any) -> None:
    """Makes `cuda` mean that GPU, in this thread."""
    index = _device_index(device)
    if index >= 0:
        _plimsoll._current_stream(_plimsoll.device("cuda", index))
        _plimsoll._set_cuda_device(index)


class device:
    """Makes `cuda` mean a GPU until the block ends; None changes nothing."""

    def __init__(self, device: Any):
        self.idx = _device_index(device) if device is not None else -1
        self._before = -1

    def __enter__(self) -> device:
        if self.idx >= 0:
            self._before = _plimsoll._set_cuda_device(self.idx)
        return self

    def __exit__(self, *failure: Any) -> None:
        if self.idx >= 0:
            _plimsoll._set_cuda_device(self._before)


class device_of(device):
    """Makes `cuda` mean the GPU of a tensor; one on the host changes nothing."""

    def __init__(self, obj: Any):
        super().__init__(obj.device if obj.is_cuda else None)


class _Properties(NamedTuple):
    """What is known of a GPU."""

    name: str
    major: int
    minor: int
    total_memory: int
    multi_processor_count: int
    L2_cache_size: int


def get_device_properties(device: Any = None) -> _Properties:
    """Name, compute capability, memory and processors of a GPU; what a stand-in has not is 0."""
    name, total, capability, processors, cache = _plimsoll._cuda_properties(_place(device))
    return _Properties(name, capability // 10, capability % 10, total, processors, cache)


def get_device_name(device: Any = None) -> str:
    """The name of a GPU."""
    return get_device_properties(device).name


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """The compute capability of a GPU, as (9, 0)."""
    facts = get_device_properties(device)
    return facts.major, facts.minor


def get_arch_list() -> list[str]:
    """Architectures that kernels were compiled for ahead of time: none, they are compiled for the GPU that is there."""
    return []


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether bfloat16 can be computed with: everywhere where there is a device."""
    return is_available()


def can_device_access_peer(device: Any, peer_device: Any) -> bool:
    """Whether one GPU reads another's memory by itself. Copies go over the host here."""
    _place(device), _place(peer_device)
    return False


def ipc_collect() -> None:
    """Memory is not shared between processes on a GPU, so there is nothing to collect."""
    init()


def synchronize(device: Any = None) -> None:
    """Waits for all work on a GPU; an operation that failed there is told of here."""
    _plimsoll.synchronize(_place(device))
