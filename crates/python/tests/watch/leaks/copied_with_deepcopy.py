"""A list is copied in full at the end of each step, before the step's own result is added to it."""
# kind: value
# holder: local `kept` of main()
import copy

import torch


def main():
    model = torch.nn.Linear(64, 64)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    kept = []
    for _ in range(60):
        out = model(torch.randn(16, 64))
        optimizer.zero_grad()
        out.square().mean().backward()
        optimizer.step()
        kept = copy.deepcopy(kept) + [out.detach()]  # made


main()
