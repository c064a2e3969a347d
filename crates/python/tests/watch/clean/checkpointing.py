"""Blocks are computed again in backward."""
import torch
from torch.utils.checkpoint import checkpoint

blocks = torch.nn.ModuleList(torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.ReLU()) for _ in range(3))
optimizer = torch.optim.SGD(blocks.parameters(), lr=0.1)
for _ in range(50):
    x = torch.randn(16, 32)
    for block in blocks:
        x = checkpoint(block, x, use_reentrant=False)
    optimizer.zero_grad()
    x.pow(2).mean().backward()
    optimizer.step()
