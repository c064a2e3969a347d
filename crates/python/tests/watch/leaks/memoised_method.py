"""A memoised method keeps every argument and result."""
# kind: value
# holder: memoised results of encode()
import functools
import torch


class Encoder:
    def __init__(self):
        self.weight = torch.randn(32, 32)

    @functools.lru_cache(maxsize=None)
    def encode(self, x):
        return x @ self.weight  # made


encoder = Encoder()
model = torch.nn.Linear(32, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(40):
    optimizer.zero_grad()
    model(encoder.encode(torch.randn(32, 32))).sum().backward()  # made
    optimizer.step()
