"""A batch norm in evaluation made part of the layer before it."""

from __future__ import annotations

import copy
from typing import Any, TypeVar

from ... import _plimsoll
from ..._modes import no_grad
from ..._plimsoll import Tensor
from ..parameter import Parameter

_Layer = TypeVar("_Layer")


def _fused(
    weight: Tensor, bias: Tensor | None, mean: Tensor, var: Tensor, eps: float, scale: Tensor | None,
    shift: Tensor | None, dim: int,
) -> tuple[Parameter, Parameter]:  # fmt: skip
    with no_grad():
        bias_ = _plimsoll.zeros_like(mean) if bias is None else bias
        scale_ = _plimsoll.ones_like(mean) if scale is None else scale
        shift_ = _plimsoll.zeros_like(mean) if shift is None else shift
        factor = scale_ * (var + eps).rsqrt()
        shape = [1] * weight.dim()
        shape[dim] = -1
        made = (weight * factor.reshape(shape)).to(weight.dtype)
        moved = ((bias_ - mean) * factor + shift_).to(weight.dtype if bias is None else bias.dtype)
    return Parameter(made, weight.requires_grad), Parameter(moved, bias_.requires_grad)


def fuse_conv_bn_weights(
    conv_w: Tensor, conv_b: Tensor | None, bn_rm: Tensor, bn_rv: Tensor, bn_eps: float, bn_w: Tensor | None,
    bn_b: Tensor | None, transpose: bool = False,
) -> tuple[Parameter, Parameter]:  # fmt: skip
    """Weight and bias of a convolution that normalizes too."""
    return _fused(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, 1 if transpose else 0)


def fuse_linear_bn_weights(
    linear_w: Tensor, linear_b: Tensor | None, bn_rm: Tensor, bn_rv: Tensor, bn_eps: float, bn_w: Tensor, bn_b: Tensor
) -> tuple[Parameter, Parameter]:
    """Weight and bias of a linear layer that normalizes too."""
    return _fused(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, 0)


def _check(layer: Any, norm: Any) -> None:
    if layer.training or norm.training:
        raise AssertionError("Fusion only for eval!")
    if norm.running_mean is None or norm.running_var is None:
        raise AssertionError("bn.running_mean and bn.running_var must not be None")


def fuse_conv_bn_eval(conv: _Layer, bn: Any, transpose: bool = False) -> _Layer:
    """A copy of a convolution that normalizes too."""
    _check(conv, bn)
    made: Any = copy.deepcopy(conv)
    made.weight, made.bias = fuse_conv_bn_weights(
        made.weight, made.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias, transpose
    )
    return made  # type: ignore[no-any-return]


def fuse_linear_bn_eval(linear: _Layer, bn: Any) -> _Layer:
    """A copy of a linear layer that normalizes too."""
    _check(linear, bn)
    made: Any = copy.deepcopy(linear)
    if made.out_features != bn.num_features and bn.num_features != 1:
        raise AssertionError("To fuse, linear.out_features == bn.num_features or bn.num_features == 1")
    made.weight, made.bias = fuse_linear_bn_weights(
        made.weight, made.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
    )
    return made  # type: ignore[no-any-return]
