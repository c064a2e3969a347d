"""PyTorch's `torch.nn.functional`: functions of neural networks, most of them operations of the compiled module."""

from ._functional import *  # noqa: F403
