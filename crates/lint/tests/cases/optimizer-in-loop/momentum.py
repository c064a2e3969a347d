import torch
import torch.nn as nn
from torch import optim

model = nn.Linear(10, 1)
loss_fn = nn.MSELoss()
x, y = torch.randn(64, 10), torch.randn(64, 1)
for step in range(1000):
    opt = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)  # expect: optimizer-in-loop
    loss = loss_fn(model(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
