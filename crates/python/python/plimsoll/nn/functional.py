"""PyTorch's `torch.nn.functional`.

What the compiled module has as PyTorch has it is in `_functional`; what is called in another way there has a file a family."""

from ._activations import *  # noqa: F403
from ._functional import *  # noqa: F403
from ._windows import *  # noqa: F403
