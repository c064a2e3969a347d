"""Leak: a copy of the model is kept after every round, on the device."""
import copy

import torch
from torch import nn


def train(net, optimizer):
    for _ in range(3):
        x = torch.randn(128, 256, device="cuda")
        loss = (net(x) - x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def main():
    net = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 256)).cuda()
    optimizer = torch.optim.Adam(net.parameters())
    rounds = []
    for _ in range(7):
        train(net, optimizer)
        rounds.append(copy.deepcopy(net))
    return net, optimizer, rounds
