"""Parameters as one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable

from ... import _plimsoll
from ..._plimsoll import Tensor


def _check_device(param: Tensor, device: object) -> object:
    if device is not None and param.device != device:
        raise TypeError(
            f"Found two parameters on different devices ({device} and {param.device}), this is currently not supported."
        )
    return param.device


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All elements of the parameters in a row."""
    device: object = None
    rows = []
    for param in parameters:
        device = _check_device(param, device)
        rows.append(param.reshape(-1))
    return _plimsoll.cat(rows)


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Makes the parameters parts of a vector: they share its memory."""
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {type(vec).__name__}")
    device: object = None
    at = 0
    for param in parameters:
        device = _check_device(param, device)
        count = param.numel()
        param.data = vec[at : at + count].view_as(param).data
        at += count
