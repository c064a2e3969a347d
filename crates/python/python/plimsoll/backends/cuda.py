"""Matrix products on GPUs: `backends.cuda.matmul.allow_tf32`, off unless it is set."""

from __future__ import annotations

from .._plimsoll import _backend_switch, _set_backend_switch


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
