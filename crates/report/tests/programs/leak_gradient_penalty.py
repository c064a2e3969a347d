"""Leak: gradients taken with create_graph=True are kept in a running penalty that nothing uses for backward."""
import torch
from torch import nn


def main():
    net = nn.Sequential(nn.Linear(128, 512), nn.Tanh(), nn.Linear(512, 1)).cuda()
    optimizer = torch.optim.Adam(net.parameters())
    penalties = []
    for _ in range(8):
        x = torch.randn(256, 128, device="cuda", requires_grad=True)
        out = net(x)
        slope, = torch.autograd.grad(out.sum(), x, create_graph=True)
        penalties.append((slope.norm(dim=1) - 1).square().mean())
        loss = net(x.detach()).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return net, optimizer, penalties
