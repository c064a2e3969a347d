import torch
from torch import nn
model = nn.DataParallel(net).cuda()
target = target.cuda()
output = model(batch.cuda())
loss = criterion(output, target)
