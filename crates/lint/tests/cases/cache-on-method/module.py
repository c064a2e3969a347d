import functools, torch
from torch import nn
class Rope(nn.Module):
    @functools.lru_cache(maxsize=None)  # expect: cache-on-method
    def table(self, size):
        return torch.arange(size)
