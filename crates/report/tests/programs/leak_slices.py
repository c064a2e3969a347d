"""Leak: one column of each result is kept, and with it the whole result."""
import torch
from torch import nn


@torch.no_grad()
def main():
    net = nn.Sequential(nn.Linear(128, 512), nn.ReLU(), nn.Linear(512, 2048)).cuda()
    firsts = []
    for _ in range(10):
        x = torch.randn(512, 128, device="cuda")
        features = net(x)
        firsts.append(features[:, 0])
    return net, firsts
