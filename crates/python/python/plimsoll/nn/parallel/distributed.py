"""The name under which programs wrap a module for several processes."""

from __future__ import annotations

from typing import Any

from ... import distributed
from ..modules.module import Module

__all__ = ["DistributedDataParallel"]


class DistributedDataParallel(Module):
    """One module in several processes. It needs a process group, and there are none here: raises what PyTorch does before one is
    made. `DataParallel` uses several devices from one process."""

    def __init__(self, module: Module, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        distributed.no_group()
