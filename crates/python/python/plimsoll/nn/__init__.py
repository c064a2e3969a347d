"""PyTorch's `torch.nn`: its functions."""

from . import functional as functional
