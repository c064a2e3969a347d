import torch
from torch.utils.data import DataLoader
loader = DataLoader(dataset, batch_size=32, num_workers=4, pin_memory=True)
for x, y in loader:
    x = x.to(device, non_blocking=True)
