import torch
from torch import nn
model = nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4))
with torch.no_grad():
    for x in test_loader:
        out = model(x)
