"""Intel's library of linear algebra: kernels are Plimsoll's own, so it is not used."""

from __future__ import annotations


def is_available() -> bool:
    """Whether it is used: no."""
    return False
