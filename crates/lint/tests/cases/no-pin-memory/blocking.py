import torch
from torch.utils.data import DataLoader
loader = DataLoader(dataset, batch_size=32)
for x, y in loader:
    x = x.to(device)
