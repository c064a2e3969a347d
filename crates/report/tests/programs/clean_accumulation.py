"""Clean: gradients gathered over four batches before each step of the optimizer."""
import torch
from torch import nn


def main():
    net = nn.Sequential(nn.Linear(256, 2048), nn.GELU(), nn.Linear(2048, 256)).cuda()
    optimizer = torch.optim.AdamW(net.parameters())
    for _ in range(4):
        for _ in range(4):
            x = torch.randn(512, 256, device="cuda")
            loss = (net(x) - x).pow(2).mean() / 4
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return net, optimizer
