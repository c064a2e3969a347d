import torch
from torch.utils.data import DataLoader
loader = DataLoader(dataset, batch_size=32, num_workers=4)
for x, y in loader:
    x = x.to(device, non_blocking=True)  # expect: no-pin-memory
    y = y.to(device, non_blocking=True)
