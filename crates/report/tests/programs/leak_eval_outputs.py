"""Leak: predictions gathered in evaluation outside of no_grad; each keeps its graph."""
import torch
from torch import nn


def predict(net, loader):
    net.eval()
    outputs = []
    for x in loader:
        outputs.append(net(x.cuda()))
    return outputs


def main():
    net = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 16)).cuda()
    loader = [torch.randn(256, 256) for _ in range(8)]
    return net, predict(net, loader)
