"""Functions of `torch` that are shorter in Python, over operations that there are, and older names of some."""

from __future__ import annotations

import functools
import struct
import warnings
from typing import Any

from . import _plimsoll, _tensor_facts
from ._plimsoll import Tensor


def detach(input: Tensor) -> Tensor:
    """The tensor outside its graph."""
    return input.detach()


def is_complex(input: Tensor) -> bool:
    """Whether its elements are complex numbers: there are none."""
    return _tensor_facts.is_complex(input)


def is_conj(input: Tensor) -> bool:
    """Whether it stands for the conjugate of its memory: it never does."""
    return _tensor_facts.is_conj(input)


def is_neg(input: Tensor) -> bool:
    """Whether it stands for the negative of its memory: it never does."""
    return _tensor_facts.is_neg(input)


def is_signed(input: Tensor) -> bool:
    """Whether its dtype has numbers below 0."""
    return _tensor_facts.is_signed(input)


def is_nonzero(input: Tensor) -> bool:
    """Whether its one element is not 0."""
    return _tensor_facts.is_nonzero(input)


def _assert(condition: Any, message: str) -> None:
    """`assert`, as a function that programs can call in the place of the statement."""
    if not condition:
        raise AssertionError(message)


def _check(cond: bool, message: Any = None) -> None:
    """Raises a `RuntimeError` unless the condition holds; the message is a function that is called only then."""
    if not isinstance(cond, bool):
        raise TypeError(f"cond must be a bool, but got {type(cond)}")
    if cond:
        return
    if message is not None and not callable(message):
        raise TypeError("message must be a callable")
    raise RuntimeError("Expected cond to be True, but got False." if message is None else str(message()))


def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Whether both have one shape."""
    return _tensor_facts.is_same_size(input, other)


def is_inference(input: Tensor) -> bool:
    """Whether it was made in inference mode."""
    return input.is_inference()


def get_device(input: Tensor) -> int:
    """The number of the GPU that holds it; -1 on the host."""
    return _tensor_facts.get_device(input)


def from_dlpack(ext_tensor: Any, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """A tensor over the memory of an object that speaks DLPack (another framework's tensor, an array), counted as external bytes.
    Another device takes a copy, and so does memory that is read-only, with a warning; `copy=True` makes one anyway.

    >>> import plimsoll as pm
    >>> x = pm.ones(2)
    >>> pm.from_dlpack(x).data_ptr() == x.data_ptr(), pm.from_dlpack(x, copy=True).data_ptr() == x.data_ptr()
    (True, False)
    """
    made = _plimsoll.from_dlpack(ext_tensor)
    if device is not None and made.device != (asked := _plimsoll.empty(0, device=device).device):
        if copy is False:
            raise ValueError(f"from_dlpack: memory of {made.device} comes to {asked} by a copy, and copy=False was asked for")
        return made.to(asked)
    return made.clone() if copy else made


def asarray(
    obj: Any, *, dtype: Any = None, device: Any = None, copy: bool | None = None, requires_grad: bool | None = None
) -> Tensor:
    """A tensor of an object's values, over the object's own memory where that can be: a tensor, an array, a DLPack capsule, an
    object with a buffer, whose bytes are taken as the dtype's or else as those that it says they are, or numbers.

    >>> import plimsoll as pm
    >>> pm.asarray([1, 2])
    tensor([1, 2])
    """
    shares = True
    if isinstance(obj, Tensor):
        made = obj
    elif hasattr(obj, "__array_interface__") and hasattr(obj, "shape") and copy is not True:
        made = _plimsoll.from_numpy(obj) if obj.shape else _plimsoll.tensor(obj)
    elif hasattr(obj, "__dlpack__") or type(obj).__name__ == "PyCapsule":
        made = _plimsoll.from_dlpack(obj)
    elif _has_buffer(obj):
        own = _dtype_of_buffer(memoryview(obj).format)
        if dtype is None and own is None:
            raise ValueError(f"asarray: a buffer of the format {memoryview(obj).format!r} has no dtype; name one")
        made = frombuffer(obj, dtype=dtype or own)
    else:
        if copy is False:
            raise ValueError("asarray: numbers of Python cannot be shared; leave copy=False out")
        made, shares = _plimsoll.tensor(obj), False
    kept = made
    if dtype is not None or device is not None:
        made = made.to(device or made.device, dtype or made.dtype)
    if copy is False and made is not kept:
        raise ValueError("asarray: another dtype or device takes a copy, and copy=False was asked for")
    if copy and shares and made is kept:
        made = made.clone()
    if requires_grad is not None and requires_grad != made.requires_grad:
        made = made.detach().requires_grad_(requires_grad)
    return made


def _has_buffer(obj: Any) -> bool:
    """Whether its bytes can be reached; NumPy's numbers are numbers."""
    if hasattr(obj, "__array_interface__"):
        return False
    try:
        memoryview(obj)
    except TypeError:
        return False
    return True


def _dtype_of_buffer(code: str) -> Any:
    """The dtype of a letter of the module `struct`, as this machine has it."""
    if code == "?":
        return _plimsoll.bool
    kind = "f" if code in "efd" else "u" if code in "Bc" else "i" if code in "bhilqn" else ""
    names = {"f2": "float16", "f4": "float32", "f8": "float64", "u1": "uint8", "i1": "int8", "i2": "int16", "i4": "int32", "i8": "int64"}
    name = names.get(f"{kind}{struct.calcsize(code)}") if kind else None
    return name and getattr(_plimsoll, name)


@functools.cache
def _warn_of_copied_buffer() -> None:
    """Once in a process, as PyTorch says it."""
    warnings.warn(
        "The given buffer is not writable, and a tensor can be written to: the tensor has a copy of its bytes. Copy the buffer, or "
        "make it writable, to be without this warning.",
        UserWarning,
        stacklevel=3,
    )


def frombuffer(buffer: Any, *, dtype: Any, count: int = -1, offset: int = 0, requires_grad: bool = False) -> Tensor:
    """A tensor of one dimension over the bytes of an object with a buffer. It needs NumPy, which keeps the object alive.

    >>> import plimsoll as pm
    >>> pm.frombuffer(bytearray([1, 2, 3]), dtype=pm.uint8, offset=1)
    tensor([2, 3], dtype=torch.uint8)
    """
    import numpy

    try:
        nbytes = memoryview(buffer).nbytes
    except TypeError:
        raise ValueError("frombuffer: object does not implement Python buffer protocol.") from None
    except ValueError as problem:
        # PyTorch's class for a view that was released, or a file that is no longer mapped.
        raise RuntimeError(f"frombuffer: could not retrieve a contiguous buffer from the given object: {problem}") from None
    if nbytes == 0:
        raise ValueError("frombuffer: both buffer length (0) and count (-1) must not be 0")
    if not 0 <= offset < nbytes:
        raise ValueError(f"offset ({offset} bytes) must be non-negative and no greater than buffer length ({nbytes} bytes) minus 1")
    left = nbytes - offset
    if count < 0:
        if left % dtype.itemsize:
            raise ValueError(f"buffer length ({left} bytes) after offset ({offset} bytes) must be a multiple of element size ({dtype.itemsize})")
        count = left // dtype.itemsize
    if count * dtype.itemsize > left:
        raise ValueError(f"requested buffer length ({count} * {dtype.itemsize} bytes) after offset ({offset} bytes) must not be greater than actual buffer length ({nbytes} bytes)")
    raw = numpy.frombuffer(buffer, dtype=numpy.uint8, count=count * dtype.itemsize, offset=offset)
    if not raw.flags.writeable:
        _warn_of_copied_buffer()
        raw = raw.copy()
    tensor = _plimsoll.from_numpy(raw).view(dtype)
    return tensor.requires_grad_(requires_grad)


def range(start: float, end: float | None = None, step: float = 1, **options: Any) -> Tensor:
    """Numbers from `start` to `end`, which is among them; PyTorch prefers `arange`, and warns."""
    import math
    import warnings

    warnings.warn(
        "torch.range is deprecated and will be removed in a future release because its behavior is inconsistent with "
        "Python's range builtin. Instead, use torch.arange, which produces values in [start, end).",
        UserWarning,
        stacklevel=2,
    )
    if end is None:
        start, end = 0, start
    if step == 0 or (end - start) * step < 0:
        raise RuntimeError("range: upper bound and lower bound inconsistent with step sign")
    count = math.floor((end - start) / step) + 1
    options.setdefault("dtype", _plimsoll.get_default_dtype())
    whole = _plimsoll.arange(count, dtype=_plimsoll.float64)
    return (start + step * whole).to(options.pop("device", None) or _plimsoll.get_default_device(), options["dtype"])


def split_copy(input: Tensor, split_size: int, dim: int = 0, *, out: Any = None) -> tuple[Tensor, ...] | None:
    """Copies of the parts of a tensor, of `split_size` along a dimension, or written to the tensors of `out`.

    >>> import plimsoll as pm
    >>> pm.split_copy(pm.arange(3), 2)
    (tensor([0, 1]), tensor([2]))
    """
    parts = input.split(split_size, dim)
    if out is None:
        return tuple(part.clone() for part in parts)
    if len(out) != len(parts):
        raise RuntimeError(f"split_copy_Tensor_out() expected an out= argument of size {len(parts)}, got size {len(out)}")
    for target, part in zip(out, parts):
        target.resize_(part.shape).copy_(part)
    return None


def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:
    """The powers of a vector's elements as columns, from the highest unless they increase."""
    if x.dim() != 1:
        raise RuntimeError("x must be a one-dimensional tensor.")
    count = x.numel() if N is None else N
    if count < 0:
        raise RuntimeError("N must be non-negative.")
    powers = _plimsoll.arange(count, device=x.device)
    columns = x.unsqueeze(-1) ** powers
    columns = columns if x.is_floating_point() else columns.to(_plimsoll.int64)
    return columns if increasing else columns.flip(1)


def pdist(input: Tensor, p: float = 2) -> Tensor:
    """The distances of all pairs of rows."""
    from .nn.functional import pdist as of_rows

    return of_rows(input, p)


def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """The cosines of the angles between vectors along a dimension."""
    from .nn.functional import cosine_similarity as of_vectors

    return of_vectors(x1, x2, dim, eps)


def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """The distances of rows to the rows beside them."""
    from .nn.functional import pairwise_distance as of_rows

    return of_rows(x1, x2, p, eps, keepdim)


def threshold(input: Tensor, threshold: float, value: float) -> Tensor:
    """What is above a threshold, and `value` in the place of the rest."""
    from .nn.functional import threshold as above

    return above(input, threshold, value)


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """A product of two vectors with a matrix between them for each output."""
    from .nn.functional import bilinear as between

    return between(input1, input2, weight, bias)


def typename(obj: Any) -> str:
    """The name of an object's class, and for tensors PyTorch's."""
    if isinstance(obj, Tensor):
        return obj.type()
    kind = obj if isinstance(obj, type) else type(obj)
    module = getattr(kind, "__module__", "") or ""
    return kind.__qualname__ if module in ("builtins", "__builtin__", "") else f"{module}.{kind.__qualname__}"


def set_anomaly_enabled(enabled: bool, check_nan: bool = True) -> None:
    """Whether backward names the operation whose gradient has a NaN."""
    _plimsoll._set_detect_anomaly(enabled, check_nan)


def is_autocast_cpu_enabled() -> bool:
    """Whether operations on the host are cast."""
    return _plimsoll.is_autocast_enabled("cpu")


def get_autocast_gpu_dtype() -> _plimsoll.dtype:
    """What operations on GPUs are cast to."""
    return _plimsoll.get_autocast_dtype("cuda")


def get_autocast_cpu_dtype() -> _plimsoll.dtype:
    """What operations on the host are cast to."""
    return _plimsoll.get_autocast_dtype("cpu")


def set_autocast_gpu_dtype(dtype: _plimsoll.dtype) -> None:
    """Changes what operations on GPUs are cast to."""
    _plimsoll.set_autocast_dtype("cuda", dtype)


def set_autocast_cpu_dtype(dtype: _plimsoll.dtype) -> None:
    """Changes what operations on the host are cast to."""
    _plimsoll.set_autocast_dtype("cpu", dtype)


def set_autocast_cpu_enabled(enabled: bool) -> None:
    """Whether operations on the host are cast."""
    _plimsoll.set_autocast_enabled("cpu", enabled)


def get_device_module(device: Any = None) -> Any:
    """The module of a sort of device: `plimsoll.cuda` or `plimsoll.cpu`."""
    import importlib

    sort = _plimsoll.get_default_device().type if device is None else _plimsoll.device(device).type
    return importlib.import_module(f"plimsoll.{sort}")
