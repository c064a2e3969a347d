"""A softmax over many classes, of which frequent ones are cheap."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ... import _plimsoll
from ..._plimsoll import Tensor
from .. import functional as F
from .container import ModuleList, Sequential
from .linear import Linear
from .module import Module


class _ASMoutput(NamedTuple):
    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """Classes in clusters by frequency: the head scores the first cluster and the others as wholes, and each other cluster
    has layers of its own, narrower by `div_value` each time."""

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        ends = list(cutoffs)
        if not ends:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        whole = all(int(end) == end for end in ends)
        if ends != sorted(set(ends)) or min(ends) <= 0 or max(ends) > n_classes - 1 or not whole:
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in an increasing order, where each "
                "value is between 1 and n_classes-1"
            )
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*ends, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = self.cutoffs[0]
        self.n_clusters = len(self.cutoffs) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, head_bias, device, dtype)
        self.tail = ModuleList()
        for at in range(self.n_clusters):
            narrow = int(in_features // div_value ** (at + 1))
            count = self.cutoffs[at + 1] - self.cutoffs[at]
            self.tail.append(
                Sequential(Linear(in_features, narrow, False, device, dtype), Linear(narrow, count, False, device, dtype))
            )

    def reset_parameters(self) -> None:
        """Draws the first values."""
        self.head.reset_parameters()
        for cluster in self.tail:
            for layer in cluster:  # type: ignore[attr-defined]
                layer.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> _ASMoutput:
        batched = target_.dim() > 0
        if batched:
            if input_.size(0) != target_.size(0):
                raise RuntimeError("Input and target should have the same size in the batch dimension.")
            if input_.dim() != 2:
                raise RuntimeError("1D target tensor expects 2D input tensors, but found inputs with size", tuple(input_.shape))
        elif input_.dim() != 1:
            raise RuntimeError("0D target tensor expects 1D input tensors, but found inputs with size", tuple(input_.shape))
        input = input_ if batched else input_.unsqueeze(0)
        target = target_ if batched else target_.unsqueeze(0)
        output = self._of_targets(input, target)
        loss = (-output).mean()
        return _ASMoutput(output if batched else output.squeeze(0), loss)

    def _of_targets(self, input: Tensor, target: Tensor) -> Tensor:
        """The log-probability of each target."""
        in_head = target
        output = _plimsoll.zeros(target.size(0), dtype=input.dtype, device=input.device)
        seen = 0
        for at, end in enumerate(self.cutoffs):
            begin = 0 if at == 0 else self.cutoffs[at - 1]
            rows = ((target >= begin) & (target < end)).nonzero().squeeze(1)
            seen += rows.numel()
            if at == 0 or rows.numel() == 0:
                continue
            scores = self.tail[at - 1](input.index_select(0, rows))
            inside = F.log_softmax(scores, 1).gather(1, (target[rows] - begin).unsqueeze(1))
            output = output.index_copy(0, rows, inside.squeeze(1).to(output.dtype))
            in_head = in_head.index_fill(0, rows, self.shortlist_size + at - 1)
        if seen != target.size(0):
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], but values in range "
                f"[{target.min().item()}, {target.max().item()}] were found. "
            )
        head = F.log_softmax(self.head(input), 1)
        return output + head.gather(1, in_head.unsqueeze(1)).squeeze(1)

    def log_prob(self, input: Tensor) -> Tensor:
        """The log-probabilities of all classes."""
        head = F.log_softmax(self.head(input), 1)
        parts = [head[:, : self.shortlist_size]]
        for at in range(self.n_clusters):
            whole = head[:, self.shortlist_size + at].unsqueeze(1)
            parts.append(F.log_softmax(self.tail[at](input), 1) + whole)
        return _plimsoll.cat(parts, 1)

    def predict(self, input: Tensor) -> Tensor:
        """The most probable class of each row."""
        return self.log_prob(input).argmax(1)
