"""Methods of tensors that are shorter in Python."""

from __future__ import annotations

from numbers import Number
from typing import Any

from . import _plimsoll, overrides
from ._plimsoll import Tensor
from ._typed_classes import _TypedTensor

# The name is a method's below.
_class = type

# PyTorch's names of a dtype with a device, which old programs compare and convert by.
_CLASSES = {
    "FloatTensor": _plimsoll.float32,
    "DoubleTensor": _plimsoll.float64,
    "HalfTensor": _plimsoll.float16,
    "BFloat16Tensor": _plimsoll.bfloat16,
    "ByteTensor": _plimsoll.uint8,
    "CharTensor": _plimsoll.int8,
    "ShortTensor": _plimsoll.int16,
    "IntTensor": _plimsoll.int32,
    "LongTensor": _plimsoll.int64,
    "BoolTensor": _plimsoll.bool,
}


def _repr_html_(self: Tensor) -> str:
    """How a notebook shows it."""
    from . import _shown

    return _shown.of_tensor(self)


def type(self: Tensor, dtype: Any = None, non_blocking: bool = False) -> Any:
    """The name of this tensor's class in PyTorch, or the tensor in another dtype: a dtype, or one of PyTorch's old classes or its
    name.

    >>> import plimsoll as pm
    >>> pm.arange(2).type(pm.FloatTensor).type()
    'torch.FloatTensor'
    """
    if dtype is None:
        module = "torch.cuda." if self.is_cuda else "torch.meta." if self.is_meta else "torch."
        return module + next(name for name, own in _CLASSES.items() if own == self.dtype)
    if isinstance(dtype, _TypedTensor):
        # A class of a dtype is one of a device as well.
        device = dtype.device if self.device.type != dtype.device else self.device
        return self.to(device, dtype.dtype, non_blocking=non_blocking)
    if dtype is Tensor:
        return self.to(_plimsoll.get_default_dtype(), non_blocking=non_blocking)
    if not isinstance(dtype, str):
        return self.to(dtype, non_blocking=non_blocking)
    module, _, name = dtype.rpartition(".")
    if name not in _CLASSES or module not in ("torch", "torch.cuda"):
        raise ValueError(f"type: there is no class {dtype!r}; name a dtype")
    device = "cuda" if module == "torch.cuda" and not self.is_cuda else "cpu" if module == "torch" else self.device
    return self.to(device, _CLASSES[name], non_blocking=non_blocking)


def new_tensor(self: Tensor, data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A copy of `data` in this tensor's dtype and on its device, unless others are named."""
    return _plimsoll.tensor(data, dtype=dtype or self.dtype, device=device or self.device, requires_grad=requires_grad)


def module_load(self: Tensor, other: Tensor, assign: bool = False) -> Tensor:
    """What takes this tensor's place when `load_state_dict` swaps parameters: `other` itself with `assign`, else a copy of it in
    this tensor's dtype and on its device."""
    if overrides.has_torch_function_variadic(self, other):
        return overrides.handle_torch_function(Tensor.module_load, (self, other), self, other, assign=assign)  # type: ignore[no-any-return]
    return other.detach() if assign else self.copy_(other).detach()


def __reversed__(self: Tensor) -> Tensor:
    """The tensor flipped along its first dimension."""
    return self if self.dim() == 0 else self.flip(0)


def _is_view(self: Tensor) -> bool:
    """Whether it is a view of another tensor, its `_base`."""
    return self._base is not None


def fill_diagonal_(self: Tensor, fill_value: float, wrap: bool = False) -> Tensor:
    """Writes a number to the diagonal, which in a tall matrix starts again below its end if it wraps."""
    if self.dim() < 2:
        raise RuntimeError("fill_diagonal_: a diagonal needs two or more dimensions")
    if self.dim() > 2 and len(set(self.shape)) > 1:
        raise RuntimeError(f"fill_diagonal_: of more than two dimensions all must be of one size, and these are {tuple(self.shape)}")
    size, step, start = min(self.shape), sum(self.stride()), self.storage_offset()
    self.as_strided([size], [step], start).fill_(fill_value)
    height, width = self.shape[:2]
    if wrap and self.dim() == 2 and height > width + 1:
        rest = -(-self.numel() // (width + 1)) - size
        self.as_strided([rest], [step], start + self.stride(0) * (width + 1)).fill_(fill_value)
    return self


def nelement(self: Tensor) -> int:
    """Another name for `numel`."""
    return self.numel()


def __format__(self: Tensor, format_spec: str) -> str:
    """A number as Python writes it, so that a loss can be printed as `f"{loss:.3f}"`; other tensors as they are."""
    if self.dim() == 0 and _class(self) is Tensor and not (format_spec == "" and self.device._is_dry):
        return format(self.item(), format_spec)
    return object.__format__(self, format_spec)


def __contains__(self: Tensor, element: Any, /) -> bool:
    """Whether an element is there, or one of a tensor's at its place."""
    if not isinstance(element, (Tensor, Number)):
        raise RuntimeError(f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {_class(element)}.")
    if isinstance(element, complex):
        return element.imag == 0 and element.real in self
    return bool(_plimsoll.eq(self, element).any().item())  # type: ignore[arg-type]


def _own_grad(self: Tensor) -> Tensor | None:
    """The gradient, by the name that some programs know."""
    return self.grad


def _set_own_grad(self: Tensor, gradient: Tensor | None) -> None:
    self.grad = gradient


def _real(self: Tensor) -> Tensor:
    """The real part: there are no other numbers."""
    return self


def __init_subclass__(cls: Any, /, **options: Any) -> None:
    """Refuses a class whose `__torch_dispatch__` nobody would call: it would compute other things than its author means."""
    super(Tensor, cls).__init_subclass__(**options)
    if "__torch_dispatch__" in vars(cls):
        raise NotImplementedError(
            f"{cls.__name__} defines __torch_dispatch__, which Plimsoll does not have: operations below autograd are not told "
            "to Python; __torch_function__ is called for operations on objects of the class"
        )


Tensor.__init_subclass__ = classmethod(__init_subclass__)  # type: ignore[assignment]
Tensor.__reversed__ = __reversed__  # type: ignore[method-assign]
Tensor.__contains__ = __contains__  # type: ignore[method-assign]
Tensor._grad = property(_own_grad, _set_own_grad)  # type: ignore[assignment, method-assign]
Tensor.real = property(_real)  # type: ignore[assignment, method-assign]
Tensor.__format__ = __format__  # type: ignore[method-assign, assignment]
Tensor._repr_html_ = _repr_html_  # type: ignore[method-assign]
Tensor.nelement = nelement  # type: ignore[method-assign]
Tensor.type = type  # type: ignore[method-assign]
Tensor.new_tensor = new_tensor  # type: ignore[method-assign]
Tensor.module_load = module_load  # type: ignore[method-assign]
Tensor._is_view = _is_view  # type: ignore[method-assign]
Tensor.fill_diagonal_ = fill_diagonal_  # type: ignore[method-assign]
