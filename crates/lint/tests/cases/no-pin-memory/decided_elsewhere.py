import torch
from torch.utils.data import DataLoader
loader = DataLoader(dataset, pin_memory=use_cuda)
for x, y in loader:
    x = x.cuda(non_blocking=True)
