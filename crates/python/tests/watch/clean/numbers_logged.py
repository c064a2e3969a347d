"""Thousands of numbers are logged, as Python's own."""
import collections
import torch

history = collections.defaultdict(list)
model = torch.nn.Linear(32, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(80):
    out = model(torch.randn(16, 32))
    loss = out.square().mean()
    optimizer.zero_grad()
    loss.backward()
    history["loss"].append(loss.item())
    history["norm"].append(float(torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)))
    history["mean"].extend(out.mean(0).tolist())
    optimizer.step()
print({name: len(values) for name, values in history.items()})
