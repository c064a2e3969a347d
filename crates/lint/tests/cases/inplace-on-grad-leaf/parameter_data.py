import torch
from torch import nn
class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(4, 4))
        self.weight.data.uniform_(-1, 1)
        nn.init.zeros_(self.weight)
