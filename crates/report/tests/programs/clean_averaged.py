"""Clean: a running average of the weights, updated in place."""
import copy

import torch
from torch import nn


def main():
    net = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 256)).cuda()
    average = copy.deepcopy(net)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    for _ in range(8):
        x = torch.randn(256, 256, device="cuda")
        loss = (net(x) - x).abs().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for mine, theirs in zip(average.parameters(), net.parameters()):
                mine.mul_(0.99).add_(theirs, alpha=0.01)
    return net, average, optimizer
