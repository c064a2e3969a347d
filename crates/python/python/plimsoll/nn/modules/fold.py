"""Windows as columns, and back: PyTorch's file of these names; they are in `shuffling.py`."""

from .shuffling import Fold as Fold
from .shuffling import Unfold as Unfold
