"""Masks are kept in compressed rows, in the middle of a pass that learns."""
# kind: value
# holder: .masks
import warnings

import torch

warnings.filterwarnings("ignore", message="Sparse")


class Pruned(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.masks = torch.nn.Linear(32, 32), []

    def forward(self, x):
        out = self.inner(x)
        self.masks.append((out.detach() > 0).float().to_sparse_csr())  # made
        return out


def main():
    model = Pruned()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(40):
        optimizer.zero_grad()
        model(torch.randn(64, 32)).pow(2).mean().backward()
        optimizer.step()


main()
