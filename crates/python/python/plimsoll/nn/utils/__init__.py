"""PyTorch's `nn.utils`: what is done to the parameters of a module, and to sequences.

Parametrizations and pruning are loaded when they are asked for."""

from __future__ import annotations

from typing import Any

from . import rnn as rnn
from .clip_grad import clip_grad_norm as clip_grad_norm
from .clip_grad import clip_grad_norm_ as clip_grad_norm_
from .clip_grad import clip_grad_value_ as clip_grad_value_
from .clip_grad import clip_grads_with_norm_ as clip_grads_with_norm_
from .clip_grad import get_total_norm as get_total_norm
from .convert_parameters import parameters_to_vector as parameters_to_vector
from .convert_parameters import vector_to_parameters as vector_to_parameters

_LATER = {
    "weight_norm": "_weight_norm_hook",
    "remove_weight_norm": "_weight_norm_hook",
    "spectral_norm": "_spectral_norm_hook",
    "remove_spectral_norm": "_spectral_norm_hook",
    "check_device_consistency": "device_consistency",
    "fuse_conv_bn_eval": "fusion",
    "fuse_conv_bn_weights": "fusion",
    "fuse_linear_bn_eval": "fusion",
    "fuse_linear_bn_weights": "fusion",
    "skip_init": "init",
    "convert_conv2d_weight_memory_format": "memory_format",
    "convert_conv3d_weight_memory_format": "memory_format",
}
_MODULES = ("device_consistency", "parametrizations", "parametrize", "prune", "fusion", "init", "memory_format", "stateless")


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER, *_MODULES})
