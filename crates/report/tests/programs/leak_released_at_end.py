"""Leak within a function: outputs with their graphs pile up during the loop and are gone when it returns."""
import torch
from torch import nn


def collect(net):
    results = []
    for _ in range(8):
        x = torch.randn(512, 256, device="cuda")
        results.append(net(x))
    return torch.cat([r[:1].detach() for r in results])


def main():
    net = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 64)).cuda()
    return net, collect(net)
