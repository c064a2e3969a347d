"""A tenth of the weights is pruned every ten steps; masks are replaced."""
import torch
from torch.nn.utils import prune


def main():
    model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(80):
        x = torch.randn(32, 32)
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
        if step % 10 == 9:
            for layer in (model[0], model[2]):
                prune.l1_unstructured(layer, "weight", amount=0.1)
                prune.remove(layer, "weight")
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


main()
