"""Oversized cache: one large batch early on; afterwards a small part of what is reserved is ever used."""
import torch
from torch import nn


def main():
    net = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 256)).cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for batch in (65536, 512, 512, 512, 512, 512, 512, 512):
        x = torch.randn(batch, 256, device="cuda")
        loss = net(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        del x, loss
    return net, optimizer
