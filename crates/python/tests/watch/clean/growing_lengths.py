"""Sequences become longer; nothing of them stays."""
import torch

model = torch.nn.GRU(16, 16, batch_first=True)
optimizer = torch.optim.Adam(model.parameters())
for step in range(60):
    out, _ = model(torch.randn(4, 8 + step, 16))
    optimizer.zero_grad()
    out.pow(2).mean().backward()
    optimizer.step()
