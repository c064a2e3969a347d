"""A dictionary has tensors as keys."""
# kind: value
# holder: global `weights`
import torch

weights = {}
model = torch.nn.Linear(32, 32)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(40):
    out = model(torch.randn(32, 32))  # made
    optimizer.zero_grad()
    out.sum().backward()
    optimizer.step()
    weights[out.detach()] = step
