"""What the package was built of, in words: PyTorch's `torch.__config__`, which programs print into their logs."""

from __future__ import annotations

from ._plimsoll import __version__, get_num_threads


def show() -> str:
    """The version and the kernels' languages.

    >>> import plimsoll as pm
    >>> pm.__config__.show().startswith("Plimsoll built with:")
    True
    """
    return f"Plimsoll built with:\n  - version {__version__}\n  - CPU kernels in Rust, CUDA kernels compiled at run time\n"


def parallel_info() -> str:
    """How many threads operations run in."""
    return f"Plimsoll parallel backend: its own fork-join pool\n\tget_num_threads() : {get_num_threads()}\n"
