import torch
import torch.utils.checkpoint as cp
from torch import nn


class Stage(nn.Module):
    def __init__(self, blocks, use_cp):
        super().__init__()
        self.blocks = nn.ModuleList(blocks)
        self.use_cp = use_cp

    def forward(self, x):
        for block in self.blocks:
            x = cp.checkpoint(block, x) if self.use_cp else block(x)  # expect: checkpoint-use-reentrant
        return x
