"""Which dtype comes of two, which may be made of which, and what a dtype says of itself, without computing."""

from __future__ import annotations

from typing import Any

from . import _plimsoll
from ._plimsoll import dtype


def promote_types(type1: dtype, type2: dtype) -> dtype:
    """The dtype of an operation on tensors of these two.

    >>> import plimsoll as pm
    >>> pm.promote_types(pm.int64, pm.float16)
    plimsoll.float16
    """
    dry = _probe()
    return (_plimsoll.empty(1, dtype=type1, device=dry) + _plimsoll.empty(1, dtype=type2, device=dry)).dtype


def result_type(tensor1: Any, tensor2: Any) -> dtype:
    """The dtype of an operation on these tensors or numbers."""
    one, other = _imitated(tensor1), _imitated(tensor2)
    if not isinstance(one, _plimsoll.Tensor) and not isinstance(other, _plimsoll.Tensor):
        return promote_types(_plimsoll.tensor(one).dtype, _plimsoll.tensor(other).dtype)
    return (one + other).dtype  # type: ignore[no-any-return]


def can_cast(from_: dtype, to: dtype) -> bool:
    """Whether values of one dtype may be written to another: no floats to integers, nothing but bools to bools."""
    if from_.is_floating_point and not to.is_floating_point:
        return False
    return to is not _plimsoll.bool or from_ is _plimsoll.bool


_probes: list[_plimsoll.device] = []


def _probe() -> _plimsoll.device:
    """A dry device of its own: it allocates nothing, and nobody's figures change."""
    if not _probes:
        _probes.append(_plimsoll.dry(_plimsoll.private_cpu()))
    return _probes[0]


def _imitated(value: Any) -> Any:
    """A tensor of the same dtype, with dimensions or without, and no memory."""
    if not isinstance(value, _plimsoll.Tensor):
        return value
    return _plimsoll.empty([1] * bool(value.dim()), dtype=value.dtype, device=_probe())


def _is_signed(self: dtype) -> bool:
    """Whether it has numbers below 0."""
    return self not in (_plimsoll.uint8, _plimsoll.bool)


def _is_complex(self: dtype) -> bool:
    """Whether its elements are complex numbers: there are none."""
    return False


def _to_real(self: dtype) -> dtype:
    """The dtype of the parts of a complex number; of others, itself."""
    return self


setattr(dtype, "is_signed", property(_is_signed))
setattr(dtype, "is_complex", property(_is_complex))
setattr(dtype, "to_real", _to_real)
