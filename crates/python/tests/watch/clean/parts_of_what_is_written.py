"""Parts of a tensor that is written to afterwards: PyTorch refuses to tell the node that made such a part."""

import torch

model = torch.nn.Linear(16, 16)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def main():
    for _ in range(60):
        hidden = model(torch.randn(4, 16)).clone()
        first, *rest = hidden.unbind(0)
        hidden.mul_(2)
        optimizer.zero_grad()
        hidden.mean().backward()
        optimizer.step()
    print(first.shape, len(rest))


main()
