import functools, torch
from torch import nn
class Rope(nn.Module):
    @staticmethod
    @functools.lru_cache
    def table(size):
        return torch.arange(size)
