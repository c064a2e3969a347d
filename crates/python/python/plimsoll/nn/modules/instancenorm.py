"""Normalization of each channel of each sample."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from ..._plimsoll import Tensor
from .. import functional as F
from .batchnorm import _NormBase
from . import _elsewhere


class _InstanceNorm(_NormBase):
    """Mean 0 and variance 1 of each channel of each sample; without a batch too."""

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def _dim_without_batch(self) -> int:
        raise NotImplementedError(f"{type(self).__name__} does not say what its input is")

    def _check_input_dim(self, input: Tensor) -> None:
        least = self._dim_without_batch()
        if input.dim() not in (least, least + 1):
            raise ValueError(f"expected {least}D or {least + 1}D input (got {input.dim()}D input)")

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        without_batch = self._dim_without_batch()
        channels = input.dim() - without_batch
        if input.size(channels) != self.num_features:
            if self.affine:
                raise ValueError(
                    f"expected input's size at dim={channels} to match num_features ({self.num_features}), "
                    f"but got: {input.size(channels)}."
                )
            warnings.warn(
                f"input's size at dim={channels} does not match num_features. Without affine=True num_features is not "
                "used, so that it may be any.",
                stacklevel=2,
            )
        if input.dim() == without_batch:
            return self._normalized(input.unsqueeze(0)).squeeze(0)
        return self._normalized(input)

    def _normalized(self, input: Tensor) -> Tensor:
        by_input = self.training or not self.track_running_stats
        momentum = 0.0 if self.momentum is None else self.momentum
        return F.instance_norm(
            input, self.running_mean, self.running_var, self.weight, self.bias, by_input, momentum, self.eps
        )

    def _load_from_state_dict(
        self,
        state_dict: Mapping[str, Any],
        prefix: str,
        local_metadata: Mapping[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        if local_metadata.get("version") is None and not self.track_running_stats:
            # Before version 1 statistics were always tracked.
            names = [prefix + name for name in ("running_mean", "running_var") if prefix + name in state_dict]
            if names:
                listed = " and ".join(f'"{name}"' for name in names)
                error_msgs.append(
                    f"Unexpected running stats buffer(s) {listed} for {type(self).__name__} with "
                    "track_running_stats=False. Take them out of the state_dict, or set track_running_stats=True."
                )
                for name in names:
                    state_dict.pop(name)  # type: ignore[attr-defined]
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )


class InstanceNorm1d(_InstanceNorm):
    """The instance norm of sequences."""

    def _dim_without_batch(self) -> int:
        return 2


class InstanceNorm2d(_InstanceNorm):
    """The instance norm of images."""

    def _dim_without_batch(self) -> int:
        return 3


class InstanceNorm3d(_InstanceNorm):
    """The instance norm of volumes."""

    def _dim_without_batch(self) -> int:
        return 4


#: What PyTorch has in this file, and this package in others.
__getattr__ = _elsewhere.of(__name__)
