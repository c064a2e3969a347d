import torch
from torch import nn
model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
model.eval()
with torch.no_grad():
    for x in test_loader:
        out = model(x)
