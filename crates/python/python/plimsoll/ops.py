"""PyTorch's operations by the names of its dispatcher, `torch.ops.aten.mm.default`: to call them, and to name them in the
policies of selective checkpoints. There is one namespace, `aten`; operations of one's own are `autograd.Function`s."""

from __future__ import annotations

from typing import Any, Callable

from . import _plimsoll
from ._plimsoll import Tensor, _namespace

#: Forms of an operation by PyTorch's names; which one a call has is seen by its arguments here.
_OVERLOADS = (
    "default", "Tensor", "Scalar", "Tensor_Tensor", "Tensor_Scalar", "Scalar_Tensor", "int", "dim", "dim_int", "dim_IntList", "correction", "out",
    "Tensor_out", "Scalar_out", "self", "other", "input", "dtype", "dims", "sizes", "source", "value", "int_Scalar", "int_Tensor", "using_ints",
)  # fmt: skip
#: Operations whose work is done here under other names as well: a set finds each by the hash of its family (`Operation`).
_ALSO = {
    "bmm": ("matmul",),
    "convolution": ("conv1d", "conv2d", "conv3d"),
    "dot": ("matmul",),
    "mm": ("matmul",),
    "mv": ("matmul",),
    "_scaled_dot_product_efficient_attention": ("scaled_dot_product_attention",),
    "_scaled_dot_product_flash_attention": ("scaled_dot_product_attention",),
    "_scaled_dot_product_flash_attention_for_cpu": ("scaled_dot_product_attention",),
}


#: Operations that one of PyTorch's may stand for, by the one that gives them their hash.
_FAMILIES = {
    **dict.fromkeys(("bmm", "dot", "matmul", "mm", "mv"), "matmul"),
    **dict.fromkeys(("conv1d", "conv2d", "conv3d", "convolution"), "conv2d"),
    **{name: also[0] for name, also in _ALSO.items() if name.startswith("_scaled")},
}


class Operation(str):
    """The name of an operation, as policies get it. It is equal to its name and to the operations of `aten` that it does the
    work of, and sets and dictionaries of these find it. Sets of names find `matmul` and `conv2d`, and of their families only
    these."""

    def __hash__(self) -> int:
        return hash(_FAMILIES.get(str(self), str(self)))

    def __eq__(self, other: object) -> bool:
        return other == str(self) if isinstance(other, OpOverload) else str.__eq__(self, other)


def _index(input: Tensor, indices: list[Any]) -> Tensor:
    if not indices:
        raise IndexError("at least one index must be provided")
    return input[_whole_dimensions(indices)]


def _index_put_(input: Tensor, indices: list[Any], values: Tensor, accumulate: bool = False) -> Tensor:
    if accumulate or all(index is not None for index in indices):
        return input.index_put_(tuple(indices), values, accumulate)
    input[_whole_dimensions(indices)] = values
    return input


def _whole_dimensions(indices: list[Any]) -> tuple[Any, ...]:
    """What has no index of its own is taken as a whole."""
    return tuple(slice(None) if index is None else index for index in indices)


def _slice(input: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Tensor:
    if input.dim() == 0:
        raise IndexError("slice() cannot be applied to a 0-dim tensor.")
    if not -input.dim() <= dim < input.dim():
        raise IndexError(f"Dimension out of range (expected to be in range of [{-input.dim()}, {input.dim() - 1}], but got {dim})")
    if step <= 0:
        raise RuntimeError("slice step must be positive")
    return input[(slice(None),) * (dim % input.dim()) + (slice(start, end, step),)]


def _slice_copy(input: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Tensor:
    return _slice(input, dim, start, end, step).clone(memory_format=_plimsoll.contiguous_format)


#: Operations that Python writes with brackets.
_BRACKETS: dict[str, Callable[..., Any]] = {"index": _index, "index_put_": _index_put_, "slice": _slice, "slice_copy": _slice_copy}


def _function(name: str) -> Callable[..., Any] | None:
    """What does the work of an operation here."""
    if name in _BRACKETS:
        return _BRACKETS[name]
    import plimsoll

    from .nn import functional

    for place in (plimsoll, functional, Tensor):
        found = getattr(place, name, None)
        if callable(found):
            return found  # type: ignore[no-any-return]
    return _only_a_name(name) if name in _ALSO else None


def _only_a_name(name: str) -> Callable[..., Any]:
    """Of an operation that programs name in policies, and whose work is done under other names."""

    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"{_namespace()}.ops.aten.{name} cannot be called here; call {' or '.join(_ALSO[name])}")

    return refuse


class OpOverload:
    """One form of an operation. It is equal to the name that the operation has here, as policies get it."""

    def __init__(self, packet: OpOverloadPacket, overload: str) -> None:
        self.overloadpacket, self._overloadname = packet, overload
        self.namespace = "aten"
        self.__name__ = f"{packet.__name__}.{overload}"

    def name(self) -> str:
        """The dispatcher's name."""
        plain = f"{self.namespace}::{self.overloadpacket.__name__}"
        return plain if self._overloadname == "default" else f"{plain}.{self._overloadname}"

    @property
    def operations(self) -> tuple[str, ...]:
        """The names of the operations that do its work here."""
        own = self.overloadpacket.__name__
        return own, *_ALSO.get(own, ())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.overloadpacket(*args, **kwargs)

    def __eq__(self, other: object) -> bool:
        return other in self.operations if isinstance(other, str) else self is other

    def __hash__(self) -> int:
        own = self.overloadpacket.__name__
        return hash(_FAMILIES.get(own, own))

    def __repr__(self) -> str:
        return f"<OpOverload(op='aten.{self.overloadpacket.__name__}', overload='{self._overloadname}')>"

    def __str__(self) -> str:
        return f"aten.{self.__name__}"


class OpOverloadPacket:
    """An operation, of which a call's arguments choose the form.

    >>> import plimsoll as pm
    >>> pm.ops.aten.add.Tensor(pm.ones(1), 2)
    tensor([3.])
    """

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self.__name__, self._function = name, function
        self._made: dict[str, OpOverload] = {}

    def overloads(self) -> list[str]:
        """The names of the forms that were asked for so far."""
        return list(self._made)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)

    def __getattr__(self, overload: str) -> OpOverload:
        if overload not in _OVERLOADS:
            raise AttributeError(f"The underlying op of 'aten.{self.__name__}' has no overload name '{overload}'")
        if overload not in self._made:
            self._made[overload] = OpOverload(self, overload)
        return self._made[overload]

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='aten.{self.__name__}')>"

    def __str__(self) -> str:
        return f"aten.{self.__name__}"


class _Aten:
    """The namespace of PyTorch's own operations."""

    def __init__(self) -> None:
        self._made: dict[str, OpOverloadPacket] = {}

    def __getattr__(self, name: str) -> OpOverloadPacket:
        if name not in self._made:
            function = None if name.startswith("__") else _function(name)
            if function is None:
                raise AttributeError(f"'{_namespace()}.ops.aten' object has no attribute '{name}': Plimsoll does not have this operation")
            self._made[name] = OpOverloadPacket(name, function)
        return self._made[name]


aten = _Aten()
