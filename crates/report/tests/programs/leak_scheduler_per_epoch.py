"""Leak: each epoch makes a new optimizer, and a list of schedulers keeps the old ones with their momentum."""
import torch
from torch import nn


def main():
    net = nn.Sequential(nn.Linear(512, 512), nn.Tanh(), nn.Linear(512, 512)).cuda()
    schedulers = []
    for epoch in range(8):
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1 / (epoch + 1), momentum=0.9)
        schedulers.append(torch.optim.lr_scheduler.StepLR(optimizer, 10))
        for _ in range(4):
            x = torch.randn(64, 512, device="cuda")
            loss = (net(x) - x).abs().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        schedulers[-1].step()
    return net, schedulers
