"""Right: batched decoding with a cache that grows within a request and is dropped after it."""
import torch
from torch import nn

@torch.inference_mode()
def generate(layers, head, length):
    cache = [None] * len(layers)
    x = torch.randn(8, 1, 256, device="cuda")
    for _ in range(length):
        h = x
        for i, layer in enumerate(layers):
            kv = layer(h)
            cache[i] = kv if cache[i] is None else torch.cat([cache[i], kv], dim=1)
            att = torch.softmax(h @ cache[i].transpose(1, 2) / 16, -1)
            h = att @ cache[i]
        x = head(h)
    return x.float().mean().item()

def main():
    layers = [nn.Linear(256, 256).cuda() for _ in range(4)]
    head = nn.Linear(256, 256).cuda()
    return layers, head, [generate(layers, head, n) for n in (20, 45, 30, 60, 25)]
