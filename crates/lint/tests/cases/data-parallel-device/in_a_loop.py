import torch
from torch import nn
model = torch.nn.DataParallel(net, device_ids=[0, 1])
for x, y in loader:
    output = model(x)
    loss = criterion(output, y)  # expect: data-parallel-device
