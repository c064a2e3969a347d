"""Runs programs that were written for PyTorch: `torch` and its submodules are Plimsoll's, and the run ends with where
its memory went.

From the shell: `plimsoll run train.py`, or `python -m plimsoll run train.py`. In a program of one's own:

    import plimsoll.run

    plimsoll.run.resolve_torch()
    import torch  # Plimsoll, under PyTorch's names

`_finder.py` answers imports of `torch`, `_missing.py` says what is not there, `_command.py` is the command.
"""

from __future__ import annotations

from ._finder import resolve_torch as resolve_torch

__all__ = ["resolve_torch"]
