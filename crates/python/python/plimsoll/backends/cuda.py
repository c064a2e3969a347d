"""Matrix products on GPUs: `backends.cuda.matmul.allow_tf32`, off unless it is set; and the switches of attention, of
which there is one way here, so that they are noted and change nothing."""

from __future__ import annotations

import contextlib
from typing import Iterator

from .._plimsoll import _backend_switch, _cuda_unavailable, _set_backend_switch


class _Matmul:
    """Products by cuBLASLt."""

    __slots__ = ()

    @property
    def allow_tf32(self) -> bool:
        """Whether products of float32 may round their factors to TF32."""
        return _backend_switch("matmul.allow_tf32")

    @allow_tf32.setter
    def allow_tf32(self, on: bool) -> None:
        _set_backend_switch("matmul.allow_tf32", on)


matmul = _Matmul()


def is_built() -> bool:
    """Whether GPUs can be used: the driver is looked for at run time."""
    return _cuda_unavailable() is None


_attention = {"flash": True, "mem_efficient": True, "math": True, "cudnn": True}


def enable_flash_sdp(enabled: bool) -> None:
    """Noted; there is one way to compute attention."""
    _attention["flash"] = bool(enabled)


def enable_mem_efficient_sdp(enabled: bool) -> None:
    """Noted; there is one way to compute attention."""
    _attention["mem_efficient"] = bool(enabled)


def enable_math_sdp(enabled: bool) -> None:
    """Noted; there is one way to compute attention."""
    _attention["math"] = bool(enabled)


def enable_cudnn_sdp(enabled: bool) -> None:
    """Noted; there is one way to compute attention."""
    _attention["cudnn"] = bool(enabled)


def flash_sdp_enabled() -> bool:
    """What was said last."""
    return _attention["flash"]


def mem_efficient_sdp_enabled() -> bool:
    """What was said last."""
    return _attention["mem_efficient"]


def math_sdp_enabled() -> bool:
    """What was said last."""
    return _attention["math"]


def cudnn_sdp_enabled() -> bool:
    """What was said last."""
    return _attention["cudnn"]


@contextlib.contextmanager
def sdp_kernel(
    enable_flash: bool = True, enable_math: bool = True, enable_mem_efficient: bool = True, enable_cudnn: bool = True
) -> Iterator[None]:
    """These switches inside, the former ones after it."""
    former = dict(_attention)
    _attention.update(flash=enable_flash, math=enable_math, mem_efficient=enable_mem_efficient, cudnn=enable_cudnn)
    try:
        yield
    finally:
        _attention.update(former)
