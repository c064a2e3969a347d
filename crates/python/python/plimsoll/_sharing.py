"""Memory that other processes share, asked for by a tensor itself. The memory is `multiprocessing/_regions.py`, which is loaded when it
is first asked for."""

from __future__ import annotations

from ._plimsoll import Tensor, UntypedStorage


def share_memory_(self: Tensor) -> Tensor:
    """Moves its memory to where processes share it, for all tensors that share it here: a child that is forked, or is sent one of
    them, has the same bytes. A tensor that is there already, or on a GPU, stays where it is.

    >>> import plimsoll as pm
    >>> x = pm.ones(3).share_memory_()
    >>> x.is_shared(), x.tolist()
    (True, [1.0, 1.0, 1.0])
    """
    _share(self.untyped_storage())
    return self


def is_shared(self: Tensor) -> bool:
    """Whether its memory is shared with other processes; on a GPU it always could be, and PyTorch says so."""
    return _is_shared(self.untyped_storage())


def _share(self: UntypedStorage) -> UntypedStorage:
    """As a tensor's `share_memory_`."""
    if self.device.type == "cuda":
        return self
    if self.device.type != "cpu" or self.device._is_dry:
        raise RuntimeError(f"share_memory_: only memory of the host is shared between processes, and this is on {self.device}")
    from .multiprocessing._regions import region_of, share

    if region_of(self) is None:
        share(self)
    return self


def _is_shared(self: UntypedStorage) -> bool:
    """As a tensor's `is_shared`."""
    if self.device.type == "cuda":
        return True
    if self.device.type != "cpu" or self.device._is_dry:
        return False
    from .multiprocessing._regions import region_of

    return region_of(self) is not None


Tensor.share_memory_ = share_memory_  # type: ignore[method-assign]
Tensor.is_shared = is_shared  # type: ignore[method-assign]
UntypedStorage.share_memory_ = _share  # type: ignore[method-assign]
UntypedStorage.is_shared = _is_shared  # type: ignore[method-assign]
