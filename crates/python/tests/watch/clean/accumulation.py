"""Gradients add up over four batches."""
import torch

model = torch.nn.Linear(64, 64)
optimizer = torch.optim.Adam(model.parameters())
for batch in range(160):
    (model(torch.randn(8, 64)).pow(2).mean() / 4).backward()
    if batch % 4 == 3:
        optimizer.step()
        optimizer.zero_grad()
