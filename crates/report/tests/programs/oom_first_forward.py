"""Out of memory in the very first forward: only activations can be at fault."""
import torch
from torch import nn


def main():
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction((768 << 20) / total)
    net = nn.Sequential(*(nn.Sequential(nn.Linear(1024, 1024), nn.GELU()) for _ in range(16))).cuda()
    x = torch.randn(8192, 1024, device="cuda")
    kept = [net, x]
    try:
        net(x).mean().backward()
    except torch.cuda.OutOfMemoryError as error:
        kept.append(error)
    return kept
