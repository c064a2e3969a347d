"""PyTorch's `nn.parallel`: one module on several devices, each with a part of the batch.

`data_parallel.py` is the whole of it; `scatter_gather.py`, `replicate.py` and `parallel_apply.py` are its three parts,
which programs also call by themselves. `DistributedDataParallel` needs process groups, which are not here, and raises."""

from __future__ import annotations

from .data_parallel import DataParallel as DataParallel
from .data_parallel import data_parallel as data_parallel
from .distributed import DistributedDataParallel as DistributedDataParallel
from .parallel_apply import parallel_apply as parallel_apply
from .replicate import replicate as replicate
from .scatter_gather import gather as gather
from .scatter_gather import scatter as scatter
from .scatter_gather import scatter_kwargs as scatter_kwargs

__all__ = ["DataParallel", "DistributedDataParallel", "data_parallel", "gather", "parallel_apply", "replicate", "scatter"]
