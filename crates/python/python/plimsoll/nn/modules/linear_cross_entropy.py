"""The cross entropy of a linear map's results, which never exist whole."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from ..._plimsoll import Tensor
from .. import functional as F
from .linear import Linear
from .loss import _WeightedLoss


@dataclass(frozen=True)
class LinearCrossEntropyOptions:
    """How PyTorch cuts the loss into blocks. Blocks here are as large as is good for the machine."""

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"
    acc_policy: str = "auto"
    acc_dtype: Any = None


class LinearCrossEntropyLoss(_WeightedLoss):
    """A linear layer and the cross entropy of its scores in one."""

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        *,
        out_features: tuple[int, ...] = (),
        bias: bool = False,
        device: Any = None,
        dtype: Any = None,
        reduction: str = "mean",
        weight: Tensor | None = None,
        ignore_index: int | None = None,
        label_smoothing: float = 0.0,
        options: LinearCrossEntropyOptions | None = None,
    ) -> None:
        if weight is not None and tuple(weight.shape) != (num_classes,):
            raise RuntimeError(f"expected weight shape to be {(num_classes,)}, got {tuple(weight.shape)}")
        if not 0 <= label_smoothing <= 1:
            raise RuntimeError(f"expected label_smoothing to be in range [0, 1], got {label_smoothing}")
        super().__init__(weight, reduction=reduction)
        self.num_classes = num_classes
        self.out_features = out_features
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing
        # The layer's rows are all scores in one dimension; the loss sees them in several.
        self.linear = Linear(in_features, num_classes * math.prod(out_features), bias, device, dtype)
        self.options = options

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        scores = (self.num_classes, *self.out_features)
        weight: Any = self.linear.weight
        bias: Any = self.linear.bias
        if self.out_features:
            weight = weight.reshape((*scores, self.linear.in_features))
            bias = None if bias is None else bias.reshape(scores)
        return F.linear_cross_entropy(
            input, weight, target, linear_bias=bias, weight=self.weight, reduction=self.reduction,
            ignore_index=self.ignore_index, label_smoothing=self.label_smoothing, options=self.options,
        )  # fmt: skip

    def extra_repr(self) -> str:
        return (
            f"in_features={self.linear.in_features}, num_classes={self.num_classes}, "
            f"out_features={self.out_features}, bias={self.linear.bias is not None}, reduction={self.reduction}, "
            f"ignore_index={self.ignore_index}, label_smoothing={self.label_smoothing}, options={self.options}"
        )
