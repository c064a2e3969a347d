"""PyTorch's `utils.data`: datasets, samplers, and a loader of batches.

Orders are PyTorch's to the last number: a loader that is given the same seed gives the same batches in the same order. Workers are
processes, which share the memory of their tensors with this one, or threads if `multiprocessing_context="thread"` asks for them. What
Rust programs use is the crate `plimsoll-data`.
"""

from __future__ import annotations

from ._chunks import evaluate as evaluate
from ._chunks import process_in_chunks as process_in_chunks
from ._collate import default_collate as default_collate
from ._collate import default_convert as default_convert
from ._prefetch import Prefetcher as Prefetcher
from ._worker_info import get_worker_info as get_worker_info
from .dataloader import DataLoader as DataLoader
from .dataset import ChainDataset as ChainDataset
from .dataset import ConcatDataset as ConcatDataset
from .dataset import Dataset as Dataset
from .dataset import IterableDataset as IterableDataset
from .dataset import StackDataset as StackDataset
from .dataset import Subset as Subset
from .dataset import TensorDataset as TensorDataset
from .dataset import random_split as random_split
from .distributed import DistributedSampler as DistributedSampler
from .sampler import BatchSampler as BatchSampler
from .sampler import RandomSampler as RandomSampler
from .sampler import Sampler as Sampler
from .sampler import SequentialSampler as SequentialSampler
from .sampler import SubsetRandomSampler as SubsetRandomSampler
from .sampler import WeightedRandomSampler as WeightedRandomSampler

__all__ = [
    "BatchSampler",
    "ChainDataset",
    "ConcatDataset",
    "DataLoader",
    "Dataset",
    "DistributedSampler",
    "IterableDataset",
    "Prefetcher",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "StackDataset",
    "Subset",
    "SubsetRandomSampler",
    "TensorDataset",
    "WeightedRandomSampler",
    "default_collate",
    "default_convert",
    "evaluate",
    "get_worker_info",
    "process_in_chunks",
    "random_split",
]
