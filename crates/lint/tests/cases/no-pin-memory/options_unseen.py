import torch
from torch.utils.data import DataLoader
loader = DataLoader(dataset, **options)
for x, y in loader:
    x = x.cuda(non_blocking=True)
