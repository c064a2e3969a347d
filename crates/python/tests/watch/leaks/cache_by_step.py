"""A dictionary by step is never emptied."""
# kind: value
# holder: global `CACHE`
import torch

CACHE = {}


def main():
    model = torch.nn.Linear(32, 32)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(40):
        out = model(torch.randn(16, 32))
        optimizer.zero_grad()
        out.sum().backward()
        optimizer.step()
        CACHE[step] = out.detach().clone()  # made


main()
