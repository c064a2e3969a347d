"""Leak: a cache by key that never forgets."""
import torch
from torch import nn

CACHE = {}


@torch.no_grad()
def encode(net, key):
    if key not in CACHE:
        tokens = torch.randint(0, 500, (64, 64), device="cuda")
        CACHE[key] = net(tokens).mean(dim=1, keepdim=True).expand(-1, 16, -1).contiguous()
    return CACHE[key]


def main():
    net = nn.Embedding(500, 512).cuda()
    for key in range(12):
        encode(net, f"sentence {key}")
    return net, CACHE
