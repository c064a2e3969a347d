"""Tensors with PyTorch's semantics, in which every byte is accounted for.

Everything that computes or allocates is in the compiled module; this package adds what is shorter in Python: the context
managers, the classes of custom functions and the command. Its own lines never stand in reports: an origin is the caller's
line below them.
"""

import sys as _sys
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

if "free-threading build" in _sys.version:
    raise ImportError(
        "plimsoll does not run on free-threaded builds of CPython: it relies on the global interpreter lock, which this one "
        f"({_sys.version.split()[0]}) can do without; use a build with the lock, without the `t` in its name"
    )

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
from . import _tensor_facts as _tensor_facts
from . import amp as amp
from . import autograd as autograd
from . import backends as backends
from . import linalg as linalg
from . import random as random
from . import safetensors as safetensors
from . import serialization as serialization
from . import special as special
from . import storage as storage
from . import utils as utils
from .amp import autocast as autocast
from ._compile import compile as compile
from ._deterministic import are_deterministic_algorithms_enabled as are_deterministic_algorithms_enabled
from ._deterministic import get_deterministic_debug_mode as get_deterministic_debug_mode
from ._deterministic import (
    is_deterministic_algorithms_warn_only_enabled as is_deterministic_algorithms_warn_only_enabled,
)
from ._deterministic import set_deterministic_debug_mode as set_deterministic_debug_mode
from ._deterministic import use_deterministic_algorithms as use_deterministic_algorithms
from . import _methods as _methods
from . import _sharing as _sharing
from ._dtype_rules import can_cast as can_cast
from ._dtype_rules import promote_types as promote_types
from ._dtype_rules import result_type as result_type
from ._facts import e as e
from ._facts import finfo as finfo
from ._facts import iinfo as iinfo
from ._facts import inf as inf
from ._facts import is_floating_point as is_floating_point
from ._facts import is_tensor as is_tensor
from ._facts import nan as nan
from ._facts import numel as numel
from ._facts import pi as pi
from ._functions_in_python import _assert as _assert
from ._functions_in_python import _check as _check
from ._functions_in_python import asarray as asarray
from ._functions_in_python import bilinear as bilinear
from ._functions_in_python import cosine_similarity as cosine_similarity
from ._functions_in_python import detach as detach
from ._functions_in_python import from_dlpack as from_dlpack  # type: ignore[assignment]
from ._functions_in_python import frombuffer as frombuffer
from ._functions_in_python import get_device as get_device
from ._functions_in_python import is_complex as is_complex
from ._functions_in_python import is_conj as is_conj
from ._functions_in_python import is_inference as is_inference
from ._functions_in_python import is_neg as is_neg
from ._functions_in_python import is_nonzero as is_nonzero
from ._functions_in_python import is_same_size as is_same_size
from ._functions_in_python import is_signed as is_signed
from ._functions_in_python import pairwise_distance as pairwise_distance
from ._functions_in_python import pdist as pdist
from ._functions_in_python import range as range
from ._functions_in_python import split_copy as split_copy
from ._functions_in_python import threshold as threshold  # type: ignore[assignment]
from ._functions_in_python import typename as typename
from ._functions_in_python import vander as vander
from ._functions_in_python import get_autocast_cpu_dtype as get_autocast_cpu_dtype
from ._functions_in_python import get_autocast_gpu_dtype as get_autocast_gpu_dtype
from ._functions_in_python import get_device_module as get_device_module
from ._functions_in_python import is_autocast_cpu_enabled as is_autocast_cpu_enabled
from ._functions_in_python import set_anomaly_enabled as set_anomaly_enabled
from ._functions_in_python import set_autocast_cpu_dtype as set_autocast_cpu_dtype
from ._functions_in_python import set_autocast_cpu_enabled as set_autocast_cpu_enabled
from ._functions_in_python import set_autocast_gpu_dtype as set_autocast_gpu_dtype
from ._modes import enable_grad as enable_grad
from ._modes import inference_mode as inference_mode
from ._modes import no_grad as no_grad
from ._modes import set_grad_enabled as set_grad_enabled
from ._settings import get_float32_matmul_precision as get_float32_matmul_precision
from ._settings import get_num_interop_threads as get_num_interop_threads
from ._settings import is_warn_always_enabled as is_warn_always_enabled
from ._settings import set_default_tensor_type as set_default_tensor_type
from ._settings import set_float32_matmul_precision as set_float32_matmul_precision
from ._settings import set_flush_denormal as set_flush_denormal
from ._settings import set_num_interop_threads as set_num_interop_threads
from ._settings import set_printoptions as set_printoptions
from ._settings import set_warn_always as set_warn_always
from ._serve_live import LiveServer as LiveServer
from ._serve_live import serve_live as serve_live
from ._shown import memory_report as memory_report
from ._shown import memory_summary as memory_summary
from ._size import Size as Size
from ._typed_classes import BFloat16Tensor as BFloat16Tensor
from ._typed_classes import BoolTensor as BoolTensor
from ._typed_classes import ByteTensor as ByteTensor
from ._typed_classes import CharTensor as CharTensor
from ._typed_classes import DoubleTensor as DoubleTensor
from ._typed_classes import FloatTensor as FloatTensor
from ._typed_classes import HalfTensor as HalfTensor
from ._typed_classes import IntTensor as IntTensor
from ._typed_classes import LongTensor as LongTensor
from ._typed_classes import ShortTensor as ShortTensor
from ._unique import unique as unique  # type: ignore[no-redef]
from ._unique import unique_consecutive as unique_consecutive  # type: ignore[no-redef]
from ._window_functions import bartlett_window as bartlett_window
from ._window_functions import blackman_window as blackman_window
from ._window_functions import hamming_window as hamming_window
from ._window_functions import hann_window as hann_window
from ._window_functions import kaiser_window as kaiser_window
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
from .random import manual_seed as manual_seed
from .serialization import load as load
from .serialization import save as save
from .storage import TypedStorage as TypedStorage
from .storage import is_storage as is_storage

from ._foreach import FUNCTIONS as _foreach_functions
from ._in_place_functions import FUNCTIONS as _in_place_functions

globals().update(_in_place_functions)
globals().update(_foreach_functions)
newaxis = None
#: Parts that are loaded when they are first named.
_LAZY = (
    "__config__", "__future__", "accelerator", "compiler", "cpu", "cuda", "distributed", "distributions", "func", "jit", "leak_watch", "masked", "monitor", "multiprocessing", "nn",
    "onnx", "ops", "optim", "overrides", "profiler", "signal", "testing", "types", "version", "watch",
)  # fmt: skip
#: Single names of such parts, and where they are.
_LAZY_NAMES = {
    "GradScaler": "amp",
    "_dirichlet_grad": "_random_functions",
    "_sample_dirichlet": "_random_functions",
    "_standard_gamma": "_random_functions",
    "_standard_gamma_grad": "_random_functions",
    "_upsample_bilinear2d_aa": "nn._interpolate",
    "LeakWatch": "leak_watch",
    "MemoryMonitor": "monitor",
    "MemoryTracker": "monitor",
    "binomial": "_random_functions",
    "load_ipython_extension": "_cell_memory",
    "poisson": "_random_functions",
    "rms_norm": "nn.functional",
    "unload_ipython_extension": "_cell_memory",
}

if _TYPE_CHECKING:
    from . import __config__ as __config__
    from . import __future__ as __future__
    from . import accelerator as accelerator
    from . import compiler as compiler
    from . import cpu as cpu
    from . import cuda as cuda
    from . import distributed as distributed
    from . import distributions as distributions
    from . import func as func
    from . import jit as jit
    from . import leak_watch as leak_watch
    from . import masked as masked
    from . import monitor as monitor
    from . import multiprocessing as multiprocessing
    from . import nn as nn
    from . import onnx as onnx
    from . import ops as ops
    from . import optim as optim
    from . import overrides as overrides
    from . import profiler as profiler
    from . import signal as signal
    from . import testing as testing
    from . import types as types
    from . import version as version
    from . import watch as watch
    from .leak_watch import LeakWatch as LeakWatch
    from .monitor import MemoryMonitor as MemoryMonitor
    from .monitor import MemoryTracker as MemoryTracker
    from ._cell_memory import load_ipython_extension as load_ipython_extension
    from ._cell_memory import unload_ipython_extension as unload_ipython_extension
    from .amp import GradScaler as GradScaler
    from .nn._interpolate import _upsample_bilinear2d_aa as _upsample_bilinear2d_aa
    from .nn.functional import rms_norm as rms_norm


def __getattr__(name: str) -> _Any:
    """Loads larger parts when they are first named: a program without them does not wait for them."""
    import importlib

    if name in _LAZY:
        return importlib.import_module(f".{name}", __name__)
    if name not in _LAZY_NAMES:
        raise AttributeError(f"module 'plimsoll' has no attribute '{name}'")
    found = getattr(importlib.import_module(f".{_LAZY_NAMES[name]}", __name__), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY, *_LAZY_NAMES})
