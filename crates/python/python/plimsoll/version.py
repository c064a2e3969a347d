"""Versions, under PyTorch's names. `plimsoll run` shows PyTorch's version instead, as programs compare with it."""

from __future__ import annotations

from ._plimsoll import __version__ as __version__

__all__ = ["__version__", "cuda", "debug", "git_version", "hip", "rocm", "xpu"]

debug = False
# The driver is found at run time; nothing is built for one version of CUDA.
cuda: str | None = None
git_version: str | None = None
hip: str | None = None
rocm: str | None = None
xpu: str | None = None
