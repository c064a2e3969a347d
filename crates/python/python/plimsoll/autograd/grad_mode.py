"""Whether operations are recorded, by the module's name in PyTorch."""

from __future__ import annotations

from typing import Any

from .._modes import enable_grad as enable_grad
from .._modes import inference_mode as inference_mode
from .._modes import no_grad as no_grad
from .._modes import set_grad_enabled as set_grad_enabled

__all__ = ["enable_grad", "inference_mode", "no_grad", "set_grad_enabled", "set_multithreading_enabled"]


class set_multithreading_enabled:
    """Whether backward may use threads of its own: it uses the caller's here, whatever is said."""

    def __init__(self, mode: bool) -> None:
        self.mode = mode

    def __enter__(self) -> None:
        pass

    def __exit__(self, *failure: Any) -> None:
        pass
