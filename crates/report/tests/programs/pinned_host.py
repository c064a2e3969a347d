"""Pinned host memory in the trace, where PyTorch records it (2.14 and later)."""
import inspect

import torch

RECORD = (
    {"record_pinned_host_memory": True}
    if "record_pinned_host_memory" in inspect.signature(torch.cuda.memory._record_memory_history_impl).parameters
    else {}
)


def main():
    kept = []
    for index in range(6):
        batch = torch.randn(300_000 + 1000 * index).pin_memory()
        kept.append(batch.cuda(non_blocking=True).sum())
    return kept
