import torch
from torch.utils.data import DataLoader
loader = DataLoader(dataset, pin_memory=True)
for x, y in loader:
    x = x.to(device, non_blocking=True)
