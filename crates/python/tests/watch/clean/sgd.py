"""The plainest loop, at module level."""
import torch

model = torch.nn.Linear(32, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(60):
    optimizer.zero_grad()
    model(torch.randn(16, 32)).pow(2).mean().backward()
    optimizer.step()
