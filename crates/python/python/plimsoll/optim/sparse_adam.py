"""SparseAdam, which is not there: there are no sparse tensors."""

from __future__ import annotations

from typing import Any


class SparseAdam:
    """PyTorch's Adam for sparse gradients. Here it only says what to use."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(
            "SparseAdam: there are no sparse tensors, so gradients are never sparse; use Adam, or SGD without momentum "
            "for a large embedding"
        )
