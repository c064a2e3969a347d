"""What `sys.exc_info` gives is kept by step."""
# kind: value
# holder: global `errors`
import sys
import torch


def fails(x):
    y = torch.relu(x) * 2  # made
    raise RuntimeError(y.shape)


errors = {}
model = torch.nn.Linear(64, 64)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(50):
    optimizer.zero_grad()
    model(torch.randn(32, 64)).mean().backward()
    optimizer.step()
    try:
        fails(torch.ones(64, 64))  # made
    except RuntimeError:
        errors[step] = sys.exc_info()
