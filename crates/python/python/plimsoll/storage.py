"""A tensor's memory as elements of one dtype: `TypedStorage`, which PyTorch keeps for old programs and warns of. The
memory itself is `UntypedStorage`."""

from __future__ import annotations

import warnings
from typing import Any, Iterator

from . import _plimsoll
from ._plimsoll import Tensor
from ._plimsoll import UntypedStorage as UntypedStorage

_SHOWN = 1000
_STORAGES = {
    _plimsoll.float32: "FloatStorage",
    _plimsoll.float64: "DoubleStorage",
    _plimsoll.float16: "HalfStorage",
    _plimsoll.bfloat16: "BFloat16Storage",
    _plimsoll.uint8: "ByteStorage",
    _plimsoll.int8: "CharStorage",
    _plimsoll.int16: "ShortStorage",
    _plimsoll.int32: "IntStorage",
    _plimsoll.int64: "LongStorage",
    _plimsoll.bool: "BoolStorage",
}


def _warn(depth: int = 3) -> None:
    warnings.warn(
        "TypedStorage is deprecated. It will be removed in the future and UntypedStorage will be the only storage class. "
        "This should only matter to you if you are using storages directly.  To access UntypedStorage directly, use "
        "tensor.untyped_storage() instead of tensor.storage()",
        UserWarning,
        stacklevel=depth,
    )


class TypedStorage:
    """The memory that a tensor and its views share, as elements. It keeps the memory alive, as a tensor does.

    >>> import plimsoll as pm, warnings
    >>> warnings.simplefilter("ignore")
    >>> x = pm.tensor([1.0, 2.0, 3.0])
    >>> len(x[1:].storage()), x[1:].storage()[0]
    (3, 1.0)
    """

    def __init__(self, tensor: Tensor) -> None:
        flat = tensor.detach()
        self._flat = flat.as_strided([flat.untyped_storage().nbytes() // flat.element_size()], [1], 0)
        self.dtype = tensor.dtype

    @property
    def device(self) -> _plimsoll.device:
        """Where it is."""
        return self._flat.device

    @property
    def is_cuda(self) -> bool:
        """Whether it is on a GPU."""
        return self._flat.is_cuda

    def untyped(self) -> UntypedStorage:
        """The memory itself."""
        return self._flat.untyped_storage()

    def data_ptr(self) -> int:
        """The address of its first element."""
        return self.untyped().data_ptr()

    def size(self) -> int:
        """How many elements it has."""
        return self._flat.numel()

    def nbytes(self) -> int:
        """How many bytes it has."""
        return self.untyped().nbytes()

    def element_size(self) -> int:
        """Bytes of one element."""
        return self._flat.element_size()

    def __len__(self) -> int:
        return self._flat.numel()

    def __getitem__(self, index: int) -> Any:
        if not isinstance(index, int):
            raise RuntimeError("slices are only supported in UntypedStorage.__getitem__")
        return self._flat[index].item()

    def __setitem__(self, index: Any, value: Any) -> None:
        self._flat[index] = value

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def fill_(self, value: Any) -> TypedStorage:
        """Writes one value everywhere."""
        self._flat.fill_(value)
        return self

    def clone(self) -> TypedStorage:
        """A copy."""
        return TypedStorage(self._flat.clone())

    def cpu(self) -> TypedStorage:
        """A copy on the host, or this one if it is there."""
        return self if self.device.type == "cpu" else TypedStorage(self._flat.cpu())

    def tolist(self) -> list[Any]:
        """Its elements."""
        return list(self._flat.tolist())

    def pickle_storage_type(self) -> str:
        """PyTorch's name of its class."""
        return _STORAGES[self.dtype]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TypedStorage) and self.data_ptr() == other.data_ptr() and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash((self.data_ptr(), self.dtype))

    def __repr__(self) -> str:
        names = f"dtype={self.dtype}, device={self.device}"
        listed = "\n".join(f" {element}" for element in self._flat[:_SHOWN].tolist())
        more = "\n ..." if len(self) > _SHOWN else ""
        return f"{listed}{more}\n[{_plimsoll._namespace()}.storage.TypedStorage({names}) of size {len(self)}]"

    __str__ = __repr__


def storage(self: Tensor) -> TypedStorage:
    """The memory of this tensor as elements; PyTorch warns that it will go, and so does this."""
    _warn()
    return TypedStorage(self)


def storage_type(self: Tensor) -> type[TypedStorage]:
    """The class of `storage()`."""
    return TypedStorage


_set_to_tensor = Tensor.set_


def set_(self: Tensor, source: Any = None, storage_offset: int = 0, size: Any = None, stride: Any = None) -> Tensor:
    """Gives this tensor other memory: a tensor's with its shape, a storage's from an element on in a shape and strides
    of its own, or none. The strides are those of a contiguous tensor unless they are given.

    >>> import plimsoll as pm
    >>> x = pm.arange(6)
    >>> x.set_(x.untyped_storage(), 1, (2, 2), (3, 1))
    tensor([[1, 2],
            [4, 5]])
    """
    if source is None:
        return _set_to_tensor(self, _plimsoll.empty(0, dtype=self.dtype, device=self.device))
    if isinstance(source, Tensor):
        if size is None:
            return _set_to_tensor(self, source)
        memory = source.detach()
    elif isinstance(source, TypedStorage):
        memory = source._flat
    elif isinstance(source, UntypedStorage):
        if source._cdata != self.untyped_storage()._cdata:
            raise NotImplementedError(
                "set_: an untyped storage is taken from this tensor alone; of another tensor's memory, give the tensor itself"
            )
        memory = self.detach()
    else:
        raise TypeError(f"set_(): argument 'source' must be a tensor or a storage, not {type(source).__name__}")
    if size is None:
        size = [memory.untyped_storage().nbytes() // memory.element_size()]
    sizes = [size] if isinstance(size, int) else list(size)
    if stride is None:
        stride, step = [0] * len(sizes), 1
        for at in range(len(sizes) - 1, -1, -1):
            stride[at], step = step, step * max(sizes[at], 1)
    return _set_to_tensor(self, memory.as_strided(sizes, list(stride), storage_offset))


def is_storage(obj: object) -> bool:
    """Whether it is a storage."""
    return isinstance(obj, (TypedStorage, UntypedStorage))


Tensor.set_ = set_  # type: ignore[method-assign]
Tensor.storage = storage  # type: ignore[method-assign]
Tensor.storage_type = storage_type  # type: ignore[method-assign]
