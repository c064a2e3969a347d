"""A buffer that is flushed whenever it has twenty entries."""
import torch

buffer = []
model = torch.nn.Linear(64, 64)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(100):
    out = model(torch.randn(32, 64))
    optimizer.zero_grad()
    out.mean().backward()
    optimizer.step()
    buffer.append(out.detach())
    if len(buffer) == 20:
        torch.stack(buffer).mean().item()
        buffer.clear()
