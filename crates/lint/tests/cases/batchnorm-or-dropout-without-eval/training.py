import torch
from torch import nn
model = nn.Sequential(nn.Linear(4, 4), nn.Dropout())
for x, y in loader:
    optimizer.zero_grad()
    criterion(model(x), y).backward()
    optimizer.step()
