"""Models are not exported to ONNX here. What models ask while they run is there: whether they are being exported.

>>> import plimsoll.onnx
>>> plimsoll.onnx.is_in_onnx_export()
False
"""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = ["export", "is_in_onnx_export"]


def is_in_onnx_export() -> bool:
    """Whether a model is being exported: never."""
    return False


def export(*args: Any, **kwargs: Any) -> NoReturn:
    """Would write a model as ONNX; raises."""
    raise RuntimeError("torch.onnx.export: Plimsoll does not write ONNX; keep the model's state_dict with torch.save")
