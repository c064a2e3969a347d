"""Leak: a running sum of losses, never used for backward, keeps the graph of every step (line of `total`)."""
import torch
from torch import nn


class Scorer(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(256, 1024)
        self.b = nn.Linear(1024, 256)

    def forward(self, x):
        hidden = torch.relu(self.a(x))
        return self.b(hidden)


def main():
    net = Scorer().cuda()
    total = torch.zeros((), device="cuda")
    for _ in range(10):
        x = torch.randn(512, 256, device="cuda")
        out = net(x)
        total = total + (out - x).square().mean()
    return net, total
