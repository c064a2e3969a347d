"""A hook that keeps the latest gradient only."""
import torch

model = torch.nn.Linear(64, 64)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
latest = {}
model.weight.register_hook(lambda gradient: latest.__setitem__("weight", gradient))
for _ in range(60):
    optimizer.zero_grad()
    model(torch.randn(32, 64)).pow(2).mean().backward()
    optimizer.step()
