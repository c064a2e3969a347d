"""Python's queues between processes, under PyTorch's name: tensors go through them in shared memory."""

from __future__ import annotations

from multiprocessing.queues import Queue as Queue
from multiprocessing.queues import SimpleQueue as SimpleQueue
