"""Callbacks with bound arguments are kept."""
# kind: value
# holder: global `callbacks`
import functools
import torch

callbacks = []
model = torch.nn.Linear(64, 64)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(50):
    out = model(torch.randn(32, 64))  # made
    callbacks.append(functools.partial(print, out.detach()))
    optimizer.zero_grad()
    out.mean().backward()
    optimizer.step()
