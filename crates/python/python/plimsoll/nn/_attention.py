"""Attention."""

from __future__ import annotations

import math

from .. import _plimsoll
from .._plimsoll import Tensor
from . import _functional


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """`softmax(query @ key.T * scale + mask) @ value`.

    The matrix of scores never exists whole, unless weights are dropped out or the mask itself needs a gradient.
    """
    if dropout_p < 0.0 or dropout_p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {dropout_p}")
    whole = dropout_p > 0.0 or (attn_mask is not None and attn_mask.requires_grad)
    if not whole:
        return _functional.scaled_dot_product_attention(
            query, key, value, attn_mask, is_causal, scale, enable_gqa
        )
    if is_causal and attn_mask is not None:
        raise RuntimeError("is_causal is a mask already; leave attn_mask away, or put the past into it")
    if enable_gqa:
        key, value = (_for_each_query(x, query.size(-3) // x.size(-3)) for x in (key, value))
    scores = query.matmul(key.transpose(-2, -1)) * (1.0 / math.sqrt(query.size(-1)) if scale is None else scale)
    if is_causal:
        places = [_plimsoll.arange(x.size(-2), device=x.device) for x in (query, key)]
        attn_mask = places[0].unsqueeze(1) >= places[1]
    if attn_mask is not None:
        boolean = attn_mask.dtype == _plimsoll.bool
        scores = _plimsoll.where(attn_mask, scores, -math.inf) if boolean else scores + attn_mask
    # A query that sees nothing gets nothing.
    blind = scores.detach().amax(-1, True) == -math.inf
    weights = _plimsoll.where(blind, 0.0, _plimsoll.where(blind, 0.0, scores).softmax(-1))
    return weights.dropout(dropout_p, True).matmul(value)


def _for_each_query(heads: Tensor, group: int) -> Tensor:
    sizes = list(heads.shape)
    repeated = heads.unsqueeze(-3).expand([*sizes[:-2], group, *sizes[-2:]])
    return repeated.reshape([*sizes[:-3], sizes[-3] * group, *sizes[-2:]])
