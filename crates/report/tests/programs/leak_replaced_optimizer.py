"""Leak: a new optimizer for every task, all of them kept with their state."""
import torch
from torch import nn


def main():
    net = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 256)).cuda()
    optimizers = []
    for task in range(6):
        optimizer = torch.optim.Adam(net.parameters())
        optimizers.append(optimizer)
        x = torch.randn(128, 256, device="cuda")
        loss = (net(x) - x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return net, optimizers
