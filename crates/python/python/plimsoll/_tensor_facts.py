"""What programs ask of a tensor without computing, most of it about sorts of tensors that there are not here: sparse,
quantized, complex ones."""

from __future__ import annotations

from typing import Any, Callable

from . import _plimsoll
from ._plimsoll import Tensor


def get_device(self: Tensor) -> int:
    """The number of the GPU that holds it; -1 on the host."""
    return -1 if self.device.index is None or not self.is_cuda else self.device.index


def is_complex(self: Tensor) -> bool:
    """Whether its elements are complex numbers: there are none."""
    return False


def is_conj(self: Tensor) -> bool:
    """Whether it stands for the conjugate of its memory: it never does."""
    return False


def is_neg(self: Tensor) -> bool:
    """Whether it stands for the negative of its memory: it never does."""
    return False


def is_signed(self: Tensor) -> bool:
    """Whether its dtype has numbers below 0."""
    return self.dtype not in (_plimsoll.uint8, _plimsoll.bool)


def is_nonzero(self: Tensor) -> bool:
    """Whether its one element is not 0."""
    if self.numel() != 1:
        count = "no values" if self.numel() == 0 else "more than one value"
        raise RuntimeError(f"Boolean value of Tensor with {count} is ambiguous")
    return bool(self)


def is_same_size(self: Tensor, other: Tensor) -> bool:
    """Whether both have one shape."""
    return self.shape == other.shape


def is_set_to(self: Tensor, tensor: Tensor) -> bool:
    """Whether both are the same elements of the same memory."""
    if self.untyped_storage().nbytes() == 0:
        return False
    same = self.shape == tensor.shape and self.stride() == tensor.stride()
    return same and self.data_ptr() == tensor.data_ptr() and self.dtype == tensor.dtype


def ndimension(self: Tensor) -> int:
    """Another name for `dim`."""
    return self.dim()


def dim_order(self: Tensor) -> tuple[int, ...]:
    """The dimensions from the one with the longest stride to the one with the shortest."""
    strides = self.stride()
    return tuple(sorted(range(self.dim()), key=lambda at: (-strides[at], at)))


def new(self: Tensor, *data: Any, device: Any = None) -> Tensor:
    """Memory of given sizes, or values, in this tensor's dtype and on its device."""
    place = device or self.device
    if len(data) == 1 and not isinstance(data[0], int):
        if isinstance(data[0], tuple) and hasattr(data[0], "numel"):
            return _plimsoll.empty(data[0], dtype=self.dtype, device=place)
        return _plimsoll.tensor(data[0], dtype=self.dtype, device=place)
    return _plimsoll.empty(*(data or (0,)), dtype=self.dtype, device=place)


def apply_(self: Tensor, callable: Callable[[Any], Any]) -> Tensor:
    """Replaces each element of a tensor on the host by what a function of Python makes of it; slow."""
    if self.device.type != "cpu":
        raise TypeError("apply_ is only implemented on CPU tensors")
    values = [callable(value) for value in self.detach().reshape(-1).tolist()]
    made = _plimsoll.tensor(values, dtype=self.dtype).reshape(self.shape)
    return self.copy_(made)


def map_(self: Tensor, tensor: Tensor, callable: Callable[[Any, Any], Any]) -> Tensor:
    """Replaces each element by what a function of Python makes of it and another tensor's; slow."""
    others = tensor.detach().expand(self.shape).reshape(-1).tolist()
    values = [callable(one, other) for one, other in zip(self.detach().reshape(-1).tolist(), others)]
    return self.copy_(_plimsoll.tensor(values, dtype=self.dtype).reshape(self.shape))


def _never(what: str) -> property:
    def answer(self: Tensor) -> bool:
        return False

    answer.__doc__ = f"Whether it is {what}: there are none."
    return property(answer)


def is_meta(self: Tensor) -> bool:
    """Whether it is on the device `meta`: without memory and values."""
    return self.device.type == "meta"


def layout(self: Tensor) -> Any:
    """How its elements lie in memory: in strides."""
    return _plimsoll.strided


_METHODS: tuple[Any, ...] = (
    get_device, is_complex, is_conj, is_neg, is_signed, is_nonzero, is_same_size, is_set_to, ndimension, dim_order, new, apply_, map_,
)  # fmt: skip
for _method in _METHODS:
    setattr(Tensor, _method.__name__, _method)
setattr(Tensor, "layout", property(layout))
setattr(Tensor, "is_meta", property(is_meta))
setattr(Tensor, "name", property(lambda self: None))
for _name, _what in {
    "is_sparse": "sparse",
    "is_sparse_csr": "sparse",
    "is_quantized": "quantized",
    "is_mkldnn": "in a library's own layout",
    "is_nested": "nested",
    "is_mps": "on Apple's GPU",
    "is_xpu": "on Intel's GPU",
    "is_xla": "on a TPU",
    "is_vulkan": "on a Vulkan device",
    "is_ipu": "on an IPU",
    "is_maia": "on a Maia device",
    "is_mtia": "on an MTIA device",
}.items():
    setattr(Tensor, _name, _never(_what))
