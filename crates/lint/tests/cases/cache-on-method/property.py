import functools, torch
from torch import nn
class Rope(nn.Module):
    @functools.cached_property
    def table(self):
        return torch.arange(8)
