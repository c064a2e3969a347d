"""PyTorch's `nn.utils`: what is done to the parameters of a module, and to sequences."""

from __future__ import annotations

from . import rnn as rnn
