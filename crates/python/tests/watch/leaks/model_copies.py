"""A copy of the model is kept at every step."""
# kind: parameter
# holder: global `snapshots`
import copy
import torch

snapshots = []
model = torch.nn.Linear(32, 32)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(40):
    optimizer.zero_grad()
    model(torch.randn(8, 32)).sum().backward()
    optimizer.step()
    snapshots.append(copy.deepcopy(model))  # made
