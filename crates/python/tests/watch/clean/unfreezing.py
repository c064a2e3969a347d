"""Layers begin to learn one after the other: state and gradients come late."""
import torch

layers = torch.nn.ModuleList(torch.nn.Linear(32, 32) for _ in range(12))
for layer in layers:
    layer.requires_grad_(False)
layers[-1].requires_grad_(True)
optimizer = torch.optim.Adam(layers.parameters())
for step in range(80):
    if step % 2 == 1 and step // 2 < 12:
        layers[-1 - step // 2].requires_grad_(True)
    x = torch.randn(8, 32)
    for layer in layers:
        x = layer(x).relu()
    optimizer.zero_grad()
    x.pow(2).mean().backward()
    optimizer.step()
