"""PyTorch's `multiprocessing`: Python's own, with tensors that go to other processes in shared memory, and `spawn`.

Everything of Python's `multiprocessing` is here under its own name. Once this is imported, a tensor on its way to another process is
moved into memory that both share, and is not copied: what one writes the other reads.
"""

from __future__ import annotations

import multiprocessing as _python
from multiprocessing import *  # noqa: F403
from multiprocessing import reduction as reduction

from ._strategy import get_all_sharing_strategies as get_all_sharing_strategies
from ._strategy import get_sharing_strategy as get_sharing_strategy
from ._strategy import set_sharing_strategy as set_sharing_strategy
from .reductions import init_reductions as init_reductions
from .spawn import ENV_VAR_PARALLEL_START as ENV_VAR_PARALLEL_START
from .spawn import ProcessContext as ProcessContext
from .spawn import ProcessExitedException as ProcessExitedException
from .spawn import ProcessRaisedException as ProcessRaisedException
from .spawn import SpawnContext as SpawnContext
from .spawn import spawn as spawn
from .spawn import start_processes as start_processes

__all__ = [  # noqa: PLE0604
    "get_all_sharing_strategies",
    "get_sharing_strategy",
    "set_sharing_strategy",
    *_python.__all__,
]

init_reductions()
