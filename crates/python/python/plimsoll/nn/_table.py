"""Rows of a table by index."""

from __future__ import annotations

import warnings

from .. import _plimsoll
from .._modes import no_grad
from .._plimsoll import Tensor
from . import _functional
from ._distance import length


def _renorm(weight: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> None:
    """Scales the rows that are looked up down to `max_norm`, in place."""
    with no_grad():
        indices = indices.reshape(-1)
        rows = weight.detach()[indices]
        norms = length(rows, norm_type, 1, True)
        weight.detach()[indices] = rows * _plimsoll.where(norms > max_norm, max_norm / (norms + 1e-7), 1.0)


def _refuse_sparse(name: str, weight: Tensor) -> None:
    if weight.requires_grad and _plimsoll.is_grad_enabled():
        raise NotImplementedError(
            f"{name}: sparse=True asks for sparse gradients, which do not exist here; leave it away for dense ones"
        )


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """The rows of `weight` at the indices `input`."""
    if sparse:
        _refuse_sparse("embedding", weight)
    if padding_idx is not None and not -weight.size(0) <= padding_idx < weight.size(0):
        raise AssertionError("Padding_idx must be within num_embeddings")
    if max_norm is not None:
        input = input.contiguous()
        _renorm(weight, input, max_norm, norm_type)
    return _functional.embedding(weight, input, padding_idx, scale_grad_by_freq)


def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """The sum, mean or maximum of the rows of `weight` in each bag of indices."""
    if weight.dtype == _plimsoll.int64 and input.dtype.is_floating_point:
        warnings.warn("embedding_bag takes the indices first and the weight second", stacklevel=2)
        weight, input = input, weight
    if per_sample_weights is not None and input.shape != per_sample_weights.shape:
        raise ValueError(
            f"embedding_bag: per_sample_weights has the shape {tuple(per_sample_weights.shape)} and the input "
            f"{tuple(input.shape)}; they must be the same"
        )
    if weight.dim() != 2:
        raise ValueError(f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.dim()}")
    if input.dim() == 2:
        if offsets is not None:
            raise ValueError("if input is 2D, then offsets has to be None: its rows are the bags")
        rows, columns = input.shape
        offsets = _plimsoll.arange(0, rows * columns, columns, dtype=input.dtype, device=input.device) if columns else (
            _plimsoll.zeros(rows, dtype=input.dtype, device=input.device)
        )
        include_last_offset = False
        input = input.reshape(-1)
        per_sample_weights = None if per_sample_weights is None else per_sample_weights.reshape(-1)
    elif input.dim() != 1:
        raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.dim()}")
    elif offsets is None or offsets.dim() != 1:
        raise ValueError("offsets has to be a 1D Tensor")
    if mode not in ("sum", "mean", "max"):
        raise ValueError("mode has to be one of sum, mean or max")
    if include_last_offset and offsets.numel() > 0 and (mode == "max" or padding_idx is not None):
        # Here PyTorch's last bag goes to the end of the input, whatever the last offset says.
        offsets, include_last_offset = offsets[:-1], False
    if mode == "max" and (scale_grad_by_freq or sparse):
        raise ValueError("max mode takes neither scale_grad_by_freq nor sparse")
    if sparse:
        _refuse_sparse("embedding_bag", weight)
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(f"embedding_bag: per_sample_weights are for mode='sum', and the mode is '{mode}'")
    if max_norm is not None:
        _renorm(weight, input, max_norm, norm_type)
    return _functional.embedding_bag(
        weight, input, offsets, mode, scale_grad_by_freq, per_sample_weights, include_last_offset, padding_idx
    )
