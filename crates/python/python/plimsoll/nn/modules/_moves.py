"""The arguments of `Module.to`, and what they do to a tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ... import _plimsoll
from ..._plimsoll import Tensor

_NAMES = ("device", "dtype", "non_blocking", "tensor", "memory_format", "copy")


def _refuse(args: tuple[Any, ...]) -> None:
    kinds = ", ".join(type(given).__name__ for given in args)
    raise TypeError(f"to() received an invalid combination of arguments - got ({kinds}), but expected a device, a dtype or a tensor")


def parsed(*args: Any, **kwargs: Any) -> Callable[[Tensor], Tensor]:
    """A function that moves and casts one tensor; only floats are cast, and channels-last means 4 or 5 dimensions."""
    asked: dict[str, Any] = {"device": None, "dtype": None, "non_blocking": False, "memory_format": None}
    rest = list(args)
    unknown = [name for name in kwargs if name not in _NAMES]
    if unknown:
        raise TypeError(f"to() got an unexpected keyword argument {unknown[0]!r}")
    like = kwargs.pop("tensor", None)
    if rest and isinstance(rest[0], Tensor):
        like = rest.pop(0)
    if like is not None:
        asked["device"], asked["dtype"] = like.device, like.dtype
    elif rest and isinstance(rest[0], _plimsoll.dtype):
        asked["dtype"] = rest.pop(0)
    elif rest and not isinstance(rest[0], bool):
        asked["device"] = rest.pop(0)
        if rest and (rest[0] is None or isinstance(rest[0], _plimsoll.dtype)):
            asked["dtype"] = rest.pop(0)
        elif rest:
            _refuse(args)
    if rest and isinstance(rest[0], bool):
        asked["non_blocking"] = rest.pop(0)
    if rest or (args and isinstance(args[0], bool)):
        _refuse(args)
    if kwargs.get("copy"):
        raise RuntimeError(".to() does not accept copy argument: a module is changed in place")
    asked.update({name: value for name, value in kwargs.items() if name != "copy"})
    device, dtype = asked["device"], asked["dtype"]
    if device is not None and not isinstance(device, _plimsoll.device):
        device = _plimsoll.device(device)
    if dtype is not None and not dtype.is_floating_point:
        raise TypeError(f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={dtype}")

    def moved(tensor: Tensor) -> Tensor:
        cast = dtype if tensor.is_floating_point() else None
        options: dict[str, Any] = {"non_blocking": bool(asked["non_blocking"])}
        if asked["memory_format"] is not None and tensor.dim() in (4, 5):
            options["memory_format"] = asked["memory_format"]
        target = tensor.device if device is None else device
        return tensor.to(target, tensor.dtype if cast is None else cast, **options)

    return moved
