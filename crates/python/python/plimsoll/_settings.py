"""Settings that PyTorch's programs make once: how tensors are printed, how exact products are, how many threads there
are, which classes old programs create."""

from __future__ import annotations

import math
import warnings
from typing import Any

from . import _plimsoll
from ._methods import _CLASSES

_PROFILES = {"default": (4, 1000, 3, 80), "short": (2, 1000, 2, 80), "full": (4, math.inf, 3, 80)}
_MOST = 2**62
_PRECISIONS = ("highest", "high", "medium")
_precision = "highest"
_inter_op_threads = 1
_is_warning_always = False


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """How tensors are printed: digits after the point, from how many elements on only edges are shown and how long those
    are, characters of a line, and whether numbers have exponents. `profile` is "default", "short" or "full".

    >>> import plimsoll as pm
    >>> pm.set_printoptions(precision=2)
    >>> pm.tensor([0.125])
    tensor([0.12])
    >>> pm.set_printoptions(profile="default")
    """
    now = list(_plimsoll._print_options()[:4])
    if profile is not None:
        if profile not in _PROFILES:
            raise ValueError(f"set_printoptions: there is no profile {profile!r}; use one of {', '.join(_PROFILES)}")
        now = [int(min(value, _MOST)) for value in _PROFILES[profile]]
    given = (precision, threshold, edgeitems, linewidth)
    chosen = [own if value is None else int(min(value, _MOST)) for value, own in zip(given, now)]
    if min(chosen) < 0:
        raise ValueError("set_printoptions: numbers of digits, elements and characters are 0 or more")
    digits, most, edges, width = chosen
    _plimsoll._set_print_options(digits, most, edges, width, sci_mode)


def get_float32_matmul_precision() -> str:
    """How exact products of float32 are: "highest", "high" or "medium"."""
    return _precision


def set_float32_matmul_precision(precision: str) -> None:
    """How exact products of float32 are on GPUs: with "highest" in full, else their factors are rounded to TF32."""
    global _precision
    if precision not in _PRECISIONS:
        raise RuntimeError(f"set_float32_matmul_precision: {precision!r} is none of {', '.join(_PRECISIONS)}")
    _precision = precision
    _plimsoll._set_backend_switch("matmul.allow_tf32", precision != "highest")


def set_flush_denormal(mode: bool) -> bool:
    """Whether tiny numbers become 0. They are computed with here; says False, as on processors that cannot."""
    return False


def get_num_interop_threads() -> int:
    """How many threads run operations beside each other, as the program said; one operation runs at a time here."""
    return _inter_op_threads


def set_num_interop_threads(threads: int) -> None:
    """Noted, and without effect: one operation runs at a time, on as many threads as `set_num_threads` says."""
    global _inter_op_threads
    if threads < 1:
        raise RuntimeError(f"set_num_interop_threads expects a positive integer, and {threads} is none")
    _inter_op_threads = threads


def set_warn_always(b: bool) -> None:
    """Whether warnings that are given once are given every time."""
    global _is_warning_always
    _is_warning_always = bool(b)
    warnings.simplefilter("always" if b else "default", UserWarning)


def is_warn_always_enabled() -> bool:
    """Whether warnings are given every time."""
    return _is_warning_always


def set_default_tensor_type(t: Any) -> None:
    """Old programs name a class, `torch.cuda.FloatTensor`; this sets the default dtype and device that it means."""
    warnings.warn(
        "torch.set_default_tensor_type() is deprecated as of PyTorch 2.1, please use torch.set_default_dtype() and "
        "torch.set_default_device() as alternatives.",
        DeprecationWarning,
        stacklevel=2,
    )
    name = t if isinstance(t, str) else f"{t.__module__.removesuffix('._typed_classes')}.{t.__name__}"
    module, _, last = name.rpartition(".")
    if last not in _CLASSES or module.split(".")[0] not in ("torch", "plimsoll"):
        raise TypeError(f"set_default_tensor_type: {name} is no class of tensors; use set_default_dtype")
    _plimsoll.set_default_dtype(_CLASSES[last])
    _plimsoll.set_default_device("cuda" if module.endswith(".cuda") else None)
