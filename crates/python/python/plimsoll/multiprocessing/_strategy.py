"""How regions are found by other processes: PyTorch's two strategies."""

from __future__ import annotations

_STRATEGIES = {"file_descriptor", "file_system"}
_chosen = "file_descriptor"


def set_sharing_strategy(new_strategy: str) -> None:
    """Chooses how tensors that are sent from now on are found: by a descriptor, which a process has a bounded number of and for
    which the sender must live until it is taken; or by a name in the system's shared memory, which is gone once it is taken.

    >>> import plimsoll.multiprocessing as mp
    >>> mp.set_sharing_strategy("file_descriptor")
    >>> mp.get_sharing_strategy()
    'file_descriptor'
    """
    global _chosen
    if new_strategy not in _STRATEGIES:
        raise AssertionError(f"invalid sharing strategy {new_strategy!r}, expected one of {_STRATEGIES}")
    _chosen = new_strategy


def get_sharing_strategy() -> str:
    """The strategy that was chosen."""
    return _chosen


def get_all_sharing_strategies() -> set[str]:
    """The strategies there are."""
    return set(_STRATEGIES)
