"""Leak: a forward hook keeps the output of one layer at every step."""
import torch
from torch import nn


def main():
    net = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 10)).cuda()
    optimizer = torch.optim.Adam(net.parameters())
    seen = []
    net[0].register_forward_hook(lambda module, inputs, output: seen.append(output))
    for _ in range(8):
        x = torch.randn(512, 256, device="cuda")
        loss = net(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return net, optimizer, seen
