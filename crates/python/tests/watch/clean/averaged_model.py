"""Stochastic weight averaging with a schedule."""
import torch
from torch.optim.swa_utils import SWALR, AveragedModel

model = torch.nn.Linear(32, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
averaged = AveragedModel(model)
schedule = SWALR(optimizer, swa_lr=0.05)
for step in range(60):
    optimizer.zero_grad()
    model(torch.randn(8, 32)).pow(2).mean().backward()
    optimizer.step()
    if step > 20:
        averaged.update_parameters(model)
        schedule.step()
