from functools import cache, lru_cache

import torch
from torch import nn


class RoPE(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.register_buffer("inv", 1.0 / 10000 ** (torch.arange(0, dim, 2) / dim))

    @cache  # expect: cache-on-method
    def table(self, length):
        t = torch.arange(length, device=self.inv.device)
        return torch.outer(t, self.inv)

    @lru_cache(maxsize=None)  # expect: cache-on-method
    def mask(self, n):
        return torch.ones(n, n).tril()
