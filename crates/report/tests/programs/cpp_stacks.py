"""Clean: stacks with C++ frames."""
import torch
from torch import nn

RECORD = {"stacks": "all", "max_entries": 60}


def main():
    net = nn.Linear(256, 256).cuda()
    for _ in range(3):
        net(torch.randn(128, 256, device="cuda")).sum().backward()
        net.zero_grad()
    return net
