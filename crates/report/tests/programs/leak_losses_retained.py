"""Leak: losses kept in a list after a backward that retains the graph."""
import torch
from torch import nn


def main():
    net = nn.Sequential(nn.Linear(256, 1024), nn.Sigmoid(), nn.Linear(1024, 10)).cuda()
    optimizer = torch.optim.Adam(net.parameters())
    losses = []
    for _ in range(8):
        x = torch.randn(512, 256, device="cuda")
        y = torch.randint(0, 10, (512,), device="cuda")
        loss = nn.functional.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        optimizer.step()
        losses.append(loss)
    return net, optimizer, losses
