"""Attention of several heads with its projections."""

from __future__ import annotations

import math
import warnings

from .. import _plimsoll
from .._plimsoll import Tensor
from . import _functional
from ._attention import scaled_dot_product_attention
from ._linear import linear


def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """What `MultiheadAttention` computes: projections, attention by heads, and a projection of the result."""
    batched = _check_ranks(query, key, value, key_padding_mask, attn_mask, num_heads)
    same_keys, same_all = key is value, query is key and key is value
    if not batched:
        query, key, value = query.unsqueeze(1), key.unsqueeze(1), value.unsqueeze(1)
        key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
    queries, batch, width = query.shape
    if width != embed_dim_to_check:
        raise AssertionError(f"the embedding dimension should be {embed_dim_to_check}, and is {width}")
    head = width // num_heads
    if head * num_heads != width:
        raise AssertionError(f"embed_dim {width} is not divisible by num_heads {num_heads}")
    if (key.shape[:2] != value.shape[:2]) if use_separate_proj_weight else (key.shape != value.shape):
        raise AssertionError(f"key's shape {tuple(key.shape)} does not go with value's {tuple(value.shape)}")
    if is_causal and attn_mask is None:
        raise RuntimeError("is_causal says that attn_mask is causal, and there is none")
    key_padding_mask = _added(key_padding_mask, "key_padding_mask", query.dtype, attn_mask)
    if is_causal and key_padding_mask is None and not need_weights:
        attn_mask = None
    else:
        attn_mask = _added(attn_mask, "attn_mask", query.dtype, None)
        is_causal = is_causal and key_padding_mask is None

    if use_separate_proj_weight:
        weights = (q_proj_weight, k_proj_weight, v_proj_weight)
        _check_widths((query, key, value), weights)
        q, k, v = _projected_apart((query, key, value), weights, in_proj_bias)
    else:
        if in_proj_weight is None:
            raise AssertionError("without use_separate_proj_weight there must be an in_proj_weight")
        q, k, v = _projected(query, key, value, in_proj_weight, in_proj_bias, same_keys, same_all)

    keys = key.shape[0]
    if attn_mask is not None:
        expected = (queries, keys) if attn_mask.dim() == 2 else (batch * num_heads, queries, keys)
        if tuple(attn_mask.shape) != expected:
            raise RuntimeError(f"attn_mask has the shape {tuple(attn_mask.shape)}, and needs {expected}")
        attn_mask = attn_mask.unsqueeze(0) if attn_mask.dim() == 2 else attn_mask
    if (bias_k is None) != (bias_v is None):
        raise AssertionError("bias_k and bias_v belong together")
    if bias_k is not None and bias_v is not None:
        if static_k is not None or static_v is not None:
            raise AssertionError("a bias cannot be added to static keys or values")
        k, v = (_plimsoll.cat([x, bias.repeat(1, batch, 1)]) for x, bias in ((k, bias_k), (v, bias_v)))
    heads = batch * num_heads
    q = q.reshape(queries, heads, head).transpose(0, 1)
    k = k.reshape(k.shape[0], heads, head).transpose(0, 1) if static_k is None else _given(static_k, heads, head)
    v = v.reshape(v.shape[0], heads, head).transpose(0, 1) if static_v is None else _given(static_v, heads, head)
    if add_zero_attn:
        zeros = _plimsoll.zeros([heads, 1, head], dtype=k.dtype, device=k.device)
        k, v = _plimsoll.cat([k, zeros], 1), _plimsoll.cat([v, zeros], 1)
    added = int(bias_k is not None) + int(add_zero_attn)
    if added:
        attn_mask = None if attn_mask is None else _functional.pad(attn_mask, [0, added])
        key_padding_mask = None if key_padding_mask is None else _functional.pad(key_padding_mask, [0, added])
    keys = k.size(1)
    if key_padding_mask is not None:
        if tuple(key_padding_mask.shape) != (batch, keys):
            raise AssertionError(f"key_padding_mask has the shape {tuple(key_padding_mask.shape)}, and needs {(batch, keys)}")
        padding = key_padding_mask.reshape(batch, 1, 1, keys).expand(-1, num_heads, -1, -1).reshape(heads, 1, keys)
        attn_mask = padding if attn_mask is None else attn_mask + padding
    p = dropout_p if training else 0.0
    if need_weights:
        result, weights = _weighted(q, k, v, attn_mask, p)  # type: ignore[assignment]
        result = result.transpose(0, 1)
    else:
        if attn_mask is not None:
            one = attn_mask.size(0) == 1
            attn_mask = attn_mask.unsqueeze(0) if one else attn_mask.reshape(batch, num_heads, -1, keys)
        q, k, v = (x.reshape(batch, num_heads, x.size(1), head) for x in (q, k, v))
        result = scaled_dot_product_attention(q, k, v, attn_mask, p, is_causal).permute(2, 0, 1, 3)
    result = linear(result.reshape(queries * batch, width), out_proj_weight, out_proj_bias)
    result = result.reshape(queries, batch, result.size(1))
    result = result if batched else result.squeeze(1)
    if not need_weights:
        return result, None
    weights = weights.reshape(batch, num_heads, queries, keys)  # type: ignore[attr-defined]
    weights = weights.mean(1) if average_attn_weights else weights
    return result, weights if batched else weights.squeeze(0)


def _weighted(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, p: float) -> tuple[Tensor, Tensor]:
    """Attention with its weights, which exist whole because they are asked for."""
    scaled, turned = q * math.sqrt(1.0 / float(q.size(-1))), k.transpose(-2, -1)
    scores = scaled.bmm(turned) if mask is None else _plimsoll.baddbmm(mask, scaled, turned)
    weights = scores.softmax(-1)
    weights = weights.dropout(p, True) if p > 0.0 else weights
    return weights.bmm(v), weights


def _check_widths(operands: tuple[Tensor, ...], weights: tuple[Tensor | None, ...]) -> None:
    for name, operand, weight in zip(("query", "key", "value"), operands, weights):
        expected = (operands[0].shape[-1], operand.shape[-1])
        if weight is not None and tuple(weight.shape) != expected:
            raise AssertionError(f"expecting {name} weights shape of {expected}, but got {tuple(weight.shape)}")


def _projected_apart(
    inputs: tuple[Tensor, Tensor, Tensor], weights: tuple[Tensor | None, Tensor | None, Tensor | None], bias: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """The three projections by a weight each."""
    biases = (None, None, None) if bias is None else bias.chunk(3)
    results = []
    for x, weight, own in zip(inputs, weights, biases, strict=True):
        if weight is None:
            raise AssertionError("use_separate_proj_weight needs q_proj_weight, k_proj_weight and v_proj_weight")
        results.append(linear(x, weight, own))
    return results[0], results[1], results[2]


def _check_ranks(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    key_padding_mask: Tensor | None,
    attn_mask: Tensor | None,
    num_heads: int,
) -> bool:
    """Whether there is a batch."""
    rank = query.dim()
    if rank not in (2, 3):
        raise AssertionError(f"query needs 2 dimensions, or 3 with a batch, and has {rank}")
    if key.dim() != rank or value.dim() != rank:
        raise AssertionError(f"query has {rank} dimensions, key {key.dim()} and value {value.dim()}; give all the same")
    if key_padding_mask is not None and key_padding_mask.dim() != rank - 1:
        raise AssertionError(f"key_padding_mask needs {rank - 1} dimensions, and has {key_padding_mask.dim()}")
    if attn_mask is not None and attn_mask.dim() not in (2, 3):
        raise AssertionError(f"attn_mask needs 2 dimensions, or 3, and has {attn_mask.dim()}")
    if rank == 2 and attn_mask is not None and attn_mask.dim() == 3:
        expected = (num_heads, query.shape[0], key.shape[0])
        if tuple(attn_mask.shape) != expected:
            raise AssertionError(f"attn_mask needs the shape {expected}, and has {tuple(attn_mask.shape)}")
    return rank == 3


def _added(mask: Tensor | None, name: str, dtype: _plimsoll.dtype, other: Tensor | None) -> Tensor | None:
    """A mask as what is added to the scores."""
    if mask is None:
        return None
    if mask.dtype != _plimsoll.bool and not mask.dtype.is_floating_point:
        raise AssertionError(f"{name} must be bool or of floating point, and is {mask.dtype}")
    if other is not None and other.dtype != mask.dtype:
        warnings.warn(f"{name} is {mask.dtype} and the other mask {other.dtype}; give both one dtype", stacklevel=3)
    if mask.dtype.is_floating_point:
        return mask
    zeros = _plimsoll.zeros(list(mask.shape), dtype=dtype, device=mask.device)
    return zeros.masked_fill(mask, -math.inf)


def _given(x: Tensor, heads: int, head: int) -> Tensor:
    """Keys or values that are not projected."""
    if x.size(0) != heads or x.size(2) != head:
        raise AssertionError(f"static keys and values need the shape [{heads}, keys, {head}], and have {list(x.shape)}")
    return x


def _projected(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    same_keys: bool,
    same_all: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """The three projections by one weight; what is the same tensor is projected in one product."""
    width = query.size(-1)
    if same_all:
        together = linear(query, weight, bias)
        q, k, v = (part.contiguous() for part in together.split(width, -1))
        return q, k, v
    weights = weight.chunk(3)
    biases = (None, None, None) if bias is None else bias.chunk(3)
    q = linear(query, weights[0], biases[0])
    if same_keys:
        of_keys = None if bias is None else bias[width:]
        k, v = (part.contiguous() for part in linear(key, weight[width:], of_keys).split(width, -1))
        return q, k, v
    return q, linear(key, weights[1], biases[1]), linear(value, weights[2], biases[2])
