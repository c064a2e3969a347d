import torch
from torch import nn
model = nn.Sequential(nn.Linear(4, 4), nn.Dropout())
model.train()
with torch.no_grad():
    for i in range(20):
        out = model(x)
