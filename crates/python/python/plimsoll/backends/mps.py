"""Apple's GPUs: there are none."""

from __future__ import annotations


def is_available() -> bool:
    """Whether tensors can be made there: no."""
    return False


def is_built() -> bool:
    """Whether it was built in: no."""
    return False
