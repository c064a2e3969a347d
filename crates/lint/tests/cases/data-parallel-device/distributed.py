import torch
from torch import nn
model = nn.parallel.DistributedDataParallel(net)
output = model(batch)
loss = criterion(output, target)
