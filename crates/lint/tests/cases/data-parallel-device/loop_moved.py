import torch
from torch import nn
model = torch.nn.DataParallel(net)
for x, y in loader:
    x, y = x.cuda(), y.cuda()
    output = model(x)
    loss = criterion(output, y)
