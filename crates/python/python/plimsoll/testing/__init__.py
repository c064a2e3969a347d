"""What tests of programs use: comparing values with tolerances, and tensors of random values."""

from __future__ import annotations

from ._comparison import assert_close as assert_close
from ._creation import make_tensor as make_tensor

__all__ = ["assert_close", "make_tensor"]
