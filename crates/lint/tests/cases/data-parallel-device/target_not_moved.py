import torch
from torch import nn
model = nn.DataParallel(net)
output = model(batch)
loss = criterion(output, target)  # expect: data-parallel-device
