"""Leak: copies of all gradients of each step are kept, to look at their norms later."""
import torch
from torch import nn


def main():
    net = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 64)).cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    history = []
    for _ in range(9):
        x = torch.randn(256, 256, device="cuda")
        loss = net(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        history.append([p.grad.clone() for p in net.parameters()])
        optimizer.step()
    return net, optimizer, history
