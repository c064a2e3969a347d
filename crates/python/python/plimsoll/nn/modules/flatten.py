"""Dimensions as one, and back: PyTorch's file of these names; they are in `linear.py`."""

from .linear import Flatten as Flatten
from .linear import Unflatten as Unflatten
