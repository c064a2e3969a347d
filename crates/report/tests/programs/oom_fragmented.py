"""Out of memory by fragmentation: half of the reserved memory is free, none of its holes is large enough."""
import torch


def main():
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction((512 << 20) / total)
    keep, drop = [], []
    try:
        for index in range(200):
            (keep if index % 2 else drop).append(torch.empty(5 << 20, dtype=torch.uint8, device="cuda"))
    except torch.cuda.OutOfMemoryError:
        pass
    drop.clear()
    try:
        keep.append(torch.empty(64 << 20, dtype=torch.uint8, device="cuda"))
    except torch.cuda.OutOfMemoryError:
        pass
    return keep
