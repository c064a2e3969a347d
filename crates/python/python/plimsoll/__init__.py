"""Tensors with PyTorch's semantics, in which every byte is accounted for.

Everything that computes or allocates is in the compiled module; this package adds what is shorter in Python: the context
managers, the classes of custom functions and the command. Its own lines never stand in reports: an origin is the caller's
line below them.
"""

from ._plimsoll import *  # noqa: F403
from ._plimsoll import __version__ as __version__
from ._plimsoll import _fused_adamw_ as _fused_adamw_
from . import autograd as autograd
from . import linalg as linalg
from . import masked as masked
from . import nn as nn
from . import random as random
from . import special as special
from ._modes import enable_grad as enable_grad
from ._modes import inference_mode as inference_mode
from ._modes import no_grad as no_grad
from ._unique import unique as unique
from ._unique import unique_consecutive as unique_consecutive
from ._pools import use_mem_pool as use_mem_pool
from .functional import einsum as einsum
from .functional import tensordot as tensordot
