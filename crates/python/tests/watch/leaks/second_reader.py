"""Batches are split between two readers with `tee`; one never reads. Until a block of 57 is full both hold them."""
# kind: value
# holder: local `for_
import itertools
import torch


def batches():
    while True:
        yield torch.randn(16, 24)  # made


def main():
    for_training, for_validation = itertools.tee(batches())
    model = torch.nn.Linear(24, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(130):
        optimizer.zero_grad()
        model(next(for_training)).mean().backward()
        optimizer.step()
    return for_validation


main()
