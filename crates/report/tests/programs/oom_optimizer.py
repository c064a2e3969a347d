"""Out of memory: parameters and gradients fit, Adam's state does not."""
import torch
from torch import nn


def main():
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction((1 << 30) / total)
    net = nn.Sequential(*(nn.Linear(4096, 4096) for _ in range(5))).cuda()
    optimizer = torch.optim.Adam(net.parameters())
    kept = [net, optimizer]
    try:
        for _ in range(3):
            x = torch.randn(32, 4096, device="cuda")
            net(x).mean().backward()
            optimizer.step()
            optimizer.zero_grad()
    except torch.cuda.OutOfMemoryError as error:
        kept.append(error)
    return kept
