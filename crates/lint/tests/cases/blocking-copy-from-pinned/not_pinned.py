import torch
from torch.utils.data import DataLoader
loader = DataLoader(dataset)
for x, y in loader:
    x = x.to(device)
