import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(4, 4)
        self.table = {}
        self.table["head"] = lambda x: self.head(x)  # expect: closure-keeps-self
