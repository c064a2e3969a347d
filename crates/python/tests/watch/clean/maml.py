"""Gradients of gradients, of which nothing is kept."""
import torch

weight = torch.randn(32, 32, requires_grad=True)
optimizer = torch.optim.Adam([weight])
for _ in range(40):
    loss = 0
    for _ in range(3):
        x, fast = torch.randn(16, 32), weight
        for _ in range(2):
            (gradient,) = torch.autograd.grad((x @ fast).pow(2).mean(), fast, create_graph=True)
            fast = fast - 0.1 * gradient
        loss = loss + (x @ fast).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
