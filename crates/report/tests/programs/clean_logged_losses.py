"""Clean: the losses of all steps are kept, detached, four bytes each."""
import torch
from torch import nn


def main():
    net = nn.Sequential(nn.Linear(256, 1024), nn.Tanh(), nn.Linear(1024, 1)).cuda()
    optimizer = torch.optim.Adam(net.parameters())
    history = []
    for _ in range(10):
        x = torch.randn(512, 256, device="cuda")
        loss = net(x).square().mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        history.append(loss.detach())
    return net, optimizer, history
