"""PyTorch's `utils`: what programs use beside tensors and modules."""

from __future__ import annotations

from . import checkpoint as checkpoint
