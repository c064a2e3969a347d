"""A memoised function of few arguments."""
import functools
import torch


@functools.lru_cache(maxsize=None)
def positions(length):
    return torch.arange(length * 32, dtype=torch.float32).reshape(length, 32).sin()


model = torch.nn.Linear(32, 32)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(80):
    length = 16 + step % 6
    optimizer.zero_grad()
    model(torch.randn(length, 32) + positions(length)).pow(2).mean().backward()
    optimizer.step()
