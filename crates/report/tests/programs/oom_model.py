"""Out of memory while the model is moved to the device."""
import torch
from torch import nn


def main():
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction((512 << 20) / total)
    net = nn.Sequential(*(nn.Linear(4096, 4096) for _ in range(12)))
    try:
        net.cuda()
    except torch.cuda.OutOfMemoryError:
        pass
    return net
