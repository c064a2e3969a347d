"""Clean: the ring holds only the last 150 events, so that the trace starts in the middle of a step."""
import torch
from torch import nn

RECORD = {"max_entries": 150}


def main():
    net = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 10)).cuda()
    optimizer = torch.optim.Adam(net.parameters())
    for _ in range(12):
        x = torch.randn(256, 512, device="cuda")
        loss = net(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return net, optimizer
