"""Losses' inputs are kept by turns in one of two lists: neither list alone grows by what is told, the line does."""
# kind: value
# holder: local `
import torch


def main():
    even, odd = [], []
    model = torch.nn.Linear(24, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(60):
        batch = torch.randn(16, 24)  # made
        optimizer.zero_grad()
        model(batch).mean().backward()
        optimizer.step()
        (odd if step % 2 else even).append(batch)
    return even, odd


main()
