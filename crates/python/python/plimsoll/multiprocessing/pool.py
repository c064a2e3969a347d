"""Python's pools of processes, under PyTorch's name: tensors go to and come from them in shared memory."""

from __future__ import annotations

from multiprocessing.pool import Pool as Pool
