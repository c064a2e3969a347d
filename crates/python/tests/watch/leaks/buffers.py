"""A module registers a buffer in every forward."""
# kind: value
# holder: global `model`._buffers
import torch


class Remembers(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.calls = torch.nn.Linear(32, 32), 0

    def forward(self, x):
        y = self.inner(x)
        self.register_buffer(f"output_{self.calls}", y.detach().clone())  # made
        self.calls += 1
        return y


model = Remembers()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(50):
    optimizer.zero_grad()
    model(torch.randn(32, 32)).mean().backward()
    optimizer.step()
