import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.act = lambda x: x * torch.sigmoid(x)
        self.scale = lambda x: x * self.factor
