"""A value that goes to another process, as bytes and regions of shared memory; how those are sent is `_pipe.py`.

Tensors and arrays of some size lie in a region, one for all of a batch. The receiver maps it, and nothing is copied there. Small ones
are among the bytes: making and mapping a region takes longer than copying some kilobytes. Bytes that are many without them go into the
region too, so that a worker never waits for the room of a socket.
"""

from __future__ import annotations

import ctypes
import io
import pickle
import struct
from multiprocessing.reduction import ForkingPickler
from typing import Any

from ... import _plimsoll
from ..._plimsoll import Tensor
from ...multiprocessing._regions import Region, new_region, region_at, tensor_at
from ...multiprocessing.reductions import check_sendable

#: Bytes of a tensor or array from which it lies in shared memory.
LARGE_BYTES = 16 << 10
#: Bytes of a frame from which it lies there too.
_LARGE_FRAME_BYTES = 64 << 10
_ALIGNED_BYTES = 64
#: At most so many regions come with a message; the system allows 253 descriptors at a time.
DESCRIPTORS = 64

#: Before a pickle: the number of buffers, then of each the region, the place in it and the bytes.
_COUNT = struct.Struct("<I")
_BUFFER = struct.Struct("<IQQ")


class Message:
    """Bytes, and the regions that they tell of. Decoded when its value is wanted: what nobody wants is only let go."""

    __slots__ = ("body", "lies_in_region", "regions")

    def __init__(self, body: Any, regions: list[Region], lies_in_region: bool = False) -> None:
        self.body = body
        self.regions = regions
        #: Whether the bytes are the end of the last region.
        self.lies_in_region = lies_in_region

    def value(self) -> Any:
        """What was sent."""
        views = [region.view() for region in self.regions]
        [count] = _COUNT.unpack_from(self.body)
        place = _COUNT.size
        buffers = []
        for _ in range(count):
            region, start, nbytes = _BUFFER.unpack_from(self.body, place)
            buffers.append(views[region][start : start + nbytes])
            place += _BUFFER.size
        return pickle.loads(memoryview(self.body)[place:], buffers=buffers)


class _Pickler(ForkingPickler):
    """Takes large tensors and arrays out of the pickle."""

    def reducer_override(self, value: Any) -> Any:
        return _reduced(value) if isinstance(value, Tensor) else NotImplemented


def _reduced(tensor: Tensor) -> Any:
    check_sendable(tensor)
    if tensor.nbytes < LARGE_BYTES or tensor.device.type != "cpu":
        reduced: Any = tensor.__reduce_ex__(pickle.HIGHEST_PROTOCOL)
        return _input, reduced
    shape, stride = tuple(tensor.shape), tensor.stride()
    reached = 1 + sum((size - 1) * step for size, step in zip(shape, stride))
    if reached > tensor.numel():
        tensor = tensor.contiguous()
        stride, reached = tensor.stride(), tensor.numel()
    elements = (ctypes.c_char * (reached * tensor.element_size())).from_address(tensor.data_ptr())
    elements.tensor = tensor  # type: ignore[attr-defined]
    described = (type(tensor), str(tensor.dtype).split(".")[-1], shape, stride, tensor.requires_grad)
    return _over, (pickle.PickleBuffer(elements), *described), tensor.__dict__ or None


def _input(function: Any, arguments: Any, state: Any = None) -> Tensor:
    """A tensor that came in the frame: its memory is an input of the line that asks for the batch."""
    tensor: Tensor = function(*arguments)
    tensor.mark_input()
    if state:
        tensor.__dict__.update(state)
    return tensor


def _over(elements: Any, cls: type, dtype: str, shape: Any, stride: Any, requires_grad: bool) -> Tensor:
    """A tensor over bytes that came."""
    address = ctypes.addressof(ctypes.c_char.from_buffer(elements))
    tensor = tensor_at(elements, address, getattr(_plimsoll, dtype), shape, stride)
    if cls is not Tensor:
        return Tensor._make_subclass(cls, tensor, requires_grad)
    return tensor.requires_grad_(requires_grad)


def encode(value: Any) -> Message:
    """A value to send, with its large parts in a region. Those that lie in regions of their own stay there."""
    large: list[pickle.PickleBuffer] = []
    file = io.BytesIO()
    file.write(_COUNT.pack(0))

    def stays(buffer: pickle.PickleBuffer) -> bool:
        """Whether the bytes stay in the pickle."""
        if buffer.raw().nbytes < LARGE_BYTES:
            return True
        large.append(buffer)
        return False

    _Pickler(file, pickle.HIGHEST_PROTOCOL, True, stays).dump(value)
    body = file.getbuffer()
    if not large and len(body) < _LARGE_FRAME_BYTES:
        return Message(body, [])
    return _with_regions([buffer.raw() for buffer in large], body[_COUNT.size :])


def encode_in_frame(value: Any) -> Message:
    """A value to send without regions, however large it is."""
    file = io.BytesIO()
    file.write(_COUNT.pack(0))
    _Pickler(file, pickle.HIGHEST_PROTOCOL).dump(value)
    return Message(file.getbuffer(), [])


def _with_regions(parts: list[memoryview], pickled: memoryview) -> Message:
    regions: list[Region] = []
    places: list[tuple[Region | None, int, int]] = []
    room = 0
    for part in parts:
        own, start = _place(part)
        if own is None or (own not in regions and len(regions) + 1 == DESCRIPTORS):
            own, start = None, room
            room += -(-part.nbytes // _ALIGNED_BYTES) * _ALIGNED_BYTES
        elif own not in regions:
            regions.append(own)
        places.append((own, start, part.nbytes))
    rows = [(len(regions) if own is None else regions.index(own), start, nbytes) for own, start, nbytes in places]
    body: Any = b"".join((_COUNT.pack(len(rows)), *(_BUFFER.pack(*row) for row in rows), pickled))
    is_large = len(body) >= _LARGE_FRAME_BYTES
    if room or is_large:
        packed = new_region(room + len(body) if is_large else room)
        regions.append(packed)
        view = packed.view()
        for part, (own, start, nbytes) in zip(parts, places):
            if own is None:
                view[start : start + nbytes] = part
        if is_large:
            view[room:] = body
            body = view[room:]
    return Message(body, regions, is_large)


def _place(part: memoryview) -> tuple[Region | None, int]:
    """The region that bytes lie in already, and where; none if it cannot be handed on."""
    if part.readonly:
        return None, 0
    address = ctypes.addressof(ctypes.c_char.from_buffer(part))
    region = region_at(address)
    return (None, 0) if region is None or region.fd < 0 else (region, address - region.address)
