"""Leak: lru_cache on a function of a tensor; tensors hash by identity, so every call misses and every result is kept."""
from functools import lru_cache
import torch
from torch import nn
import torch.nn.functional as F

@lru_cache(maxsize=None)
def attention_bias(lengths, size):
    positions = torch.arange(size, device=lengths.device)
    padded = positions[None, None, None, :] >= lengths[:, None, None, None]
    future = positions[None, :] > positions[:, None]
    bias = torch.zeros(len(lengths), 1, size, size, device=lengths.device)
    return bias.masked_fill_(padded | future, -1e9)

class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.qkv, self.out, self.heads = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim), heads

    def forward(self, x, lengths):
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in self.qkv(x).chunk(3, dim=-1))
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=attention_bias(lengths, x.shape[1]))
        return self.out(y.transpose(1, 2).flatten(2))

def main():
    net = Attention(256, 4).cuda()
    opt = torch.optim.Adam(net.parameters())
    for step in range(24):
        x = torch.randn(16, 256, 256, device="cuda")
        lengths = torch.randint(64, 257, (16,), device="cuda")
        loss = (net(x, lengths) - x).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    return net, opt
