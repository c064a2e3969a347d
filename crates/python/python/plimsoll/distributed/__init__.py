"""Process groups are not here: programs that only ask whether there are any run in one process, as they do on PyTorch without a
launcher. What needs a group raises what PyTorch raises before one is made; making one raises, and says what there is.

>>> import plimsoll.distributed as dist
>>> dist.is_available() or dist.is_initialized()
False
"""

from __future__ import annotations

import enum
import os
from typing import Any, NoReturn

__all__ = [
    "ReduceOp",
    "all_gather",
    "all_reduce",
    "barrier",
    "broadcast",
    "destroy_process_group",
    "gather",
    "get_backend",
    "get_rank",
    "get_world_size",
    "init_process_group",
    "is_available",
    "is_gloo_available",
    "is_initialized",
    "is_mpi_available",
    "is_nccl_available",
    "is_torchelastic_launched",
    "new_group",
    "recv",
    "reduce",
    "scatter",
    "send",
]


class ReduceOp(enum.Enum):
    """How values of several processes become one."""

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7


def is_available() -> bool:
    """Whether process groups can be made: no."""
    return False


def is_initialized() -> bool:
    """Whether a process group has been made: no."""
    return False


def is_nccl_available() -> bool:
    """Whether groups can talk by NCCL: no."""
    return False


def is_gloo_available() -> bool:
    """Whether groups can talk by Gloo: no."""
    return False


def is_mpi_available() -> bool:
    """Whether groups can talk by MPI: no."""
    return False


def is_torchelastic_launched() -> bool:
    """Whether `torchrun` started this process: it says so in the environment."""
    return "TORCHELASTIC_RUN_ID" in os.environ


def init_process_group(*args: Any, **kwargs: Any) -> NoReturn:
    """Would join this process to others; raises."""
    raise RuntimeError(
        "torch.distributed.init_process_group: there are no process groups in Plimsoll; start the program as one process without a "
        "launcher, and use several devices with torch.nn.DataParallel"
    )


def destroy_process_group(group: Any = None) -> NoReturn:
    """Would leave a group; there is none to leave."""
    raise AssertionError("Process group cannot be None")


def no_group(*args: Any, **kwargs: Any) -> NoReturn:
    """What everything that needs a group does: raises what PyTorch does before one is made."""
    raise ValueError(
        "Default process group has not been initialized, please make sure to call init_process_group. (There are no process groups in "
        "Plimsoll: one process can use several devices with torch.nn.DataParallel.)"
    )


get_rank = get_world_size = get_backend = new_group = barrier = no_group
all_reduce = all_gather = broadcast = reduce = gather = scatter = send = recv = no_group
