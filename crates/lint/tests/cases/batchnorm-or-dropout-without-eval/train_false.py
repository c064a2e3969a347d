import torch
from torch import nn
model = nn.Sequential(nn.Linear(4, 4), nn.Dropout())
model.train(False)
with torch.no_grad():
    for x in test_loader:
        out = model(x)
