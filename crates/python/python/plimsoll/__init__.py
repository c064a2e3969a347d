"""Tensors with PyTorch's semantics, in which every byte is accounted for.

Everything that computes or allocates is in the compiled module; this package adds the context managers, which are shorter in
Python. No operation is wrapped here: a wrapper's line would stand in the reports instead of the caller's.
"""

from ._plimsoll import *  # noqa: F403
from ._plimsoll import __version__ as __version__
from ._modes import enable_grad as enable_grad
from ._modes import inference_mode as inference_mode
from ._modes import no_grad as no_grad
