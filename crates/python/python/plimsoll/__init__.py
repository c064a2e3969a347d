"""Tensors with PyTorch's semantics, in which every byte is accounted for.

Everything that computes or allocates is in the compiled module; this package adds what is shorter in Python: the context
managers, the classes of custom functions and the command. Its own lines never stand in reports: an origin is the caller's
line below them.
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from ._plimsoll import *  # noqa: F403
from ._plimsoll import __version__ as __version__
from ._aliases import *  # noqa: F403
from ._plimsoll import (
    _amp_foreach_non_finite_check_and_unscale_ as _amp_foreach_non_finite_check_and_unscale_,
)
from ._plimsoll import _amp_update_scale_ as _amp_update_scale_
from ._plimsoll import _batch_norm_with_update as _batch_norm_with_update
from ._plimsoll import _chunk_cat as _chunk_cat
from ._plimsoll import _fused_adamw_ as _fused_adamw_
from ._plimsoll import _native_batch_norm_legit as _native_batch_norm_legit
from ._plimsoll import _safe_softmax as _safe_softmax
from ._plimsoll import _softmax_backward_data as _softmax_backward_data
from ._plimsoll import _unsafe_masked_index as _unsafe_masked_index
from ._plimsoll import _unsafe_masked_index_put_accumulate as _unsafe_masked_index_put_accumulate
from ._plimsoll import group_norm as group_norm
from . import amp as amp
from . import autograd as autograd
from . import backends as backends
from . import linalg as linalg
from . import masked as masked
from . import nn as nn
from . import profiler as profiler
from . import random as random
from . import safetensors as safetensors
from . import serialization as serialization
from . import signal as signal
from . import special as special
from . import utils as utils
from . import watch as watch
from .amp import autocast as autocast
from ._deterministic import are_deterministic_algorithms_enabled as are_deterministic_algorithms_enabled
from ._deterministic import get_deterministic_debug_mode as get_deterministic_debug_mode
from ._deterministic import (
    is_deterministic_algorithms_warn_only_enabled as is_deterministic_algorithms_warn_only_enabled,
)
from ._deterministic import set_deterministic_debug_mode as set_deterministic_debug_mode
from ._deterministic import use_deterministic_algorithms as use_deterministic_algorithms
from . import _methods as _methods
from ._facts import e as e
from ._facts import finfo as finfo
from ._facts import iinfo as iinfo
from ._facts import inf as inf
from ._facts import is_floating_point as is_floating_point
from ._facts import is_tensor as is_tensor
from ._facts import nan as nan
from ._facts import numel as numel
from ._facts import pi as pi
from ._modes import enable_grad as enable_grad
from ._modes import inference_mode as inference_mode
from ._modes import no_grad as no_grad
from ._modes import set_grad_enabled as set_grad_enabled
from ._unique import unique as unique
from ._unique import unique_consecutive as unique_consecutive
from ._pools import use_mem_pool as use_mem_pool
from .functional import as_tensor as as_tensor
from .functional import chain_matmul as chain_matmul
from .functional import conv_tbc as conv_tbc
from .functional import einsum as einsum
from .functional import histogramdd as histogramdd
from .functional import lu as lu
from .functional import segment_reduce as _segment_reduce  # noqa: F401
from .functional import segment_reduce as segment_reduce
from .functional import tensordot as tensordot
from .functional import unravel_index as unravel_index
from .nn._interpolate import _upsample_bilinear2d_aa as _upsample_bilinear2d_aa
from .nn.functional import rms_norm as rms_norm
from .serialization import load as load
from .serialization import save as save

if _TYPE_CHECKING:
    from . import func as func
    from . import optim as optim


def __getattr__(name: str) -> _Any:
    """Loads the optimizers and `func` when they are first named: a program without them does not wait for them."""
    if name not in ("func", "optim"):
        raise AttributeError(f"module 'plimsoll' has no attribute '{name}'")
    import importlib

    return importlib.import_module(f".{name}", __name__)
