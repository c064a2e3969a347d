"""Churn: the cache is emptied at every step, so that the driver is asked for the same memory again and again."""
import torch
from torch import nn


def main():
    net = nn.Linear(1024, 4096).cuda()
    for _ in range(20):
        x = torch.randn(4096, 1024, device="cuda")
        with torch.no_grad():
            y = net(x).relu()
        del x, y
        torch.cuda.empty_cache()
    return net
