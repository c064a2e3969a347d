"""Outputs that are dealt out over six lists: none of them grows enough alone, and all have to be emptied."""
# kind: value
# holder: list of

import torch

first, second, third, fourth, fifth, sixth = [], [], [], [], [], []


def main():
    model = torch.nn.Linear(16, 16)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    buckets = iter([first, second, third, fourth, fifth, sixth] * 20)
    for _ in range(120):
        output = model(torch.randn(32, 16))
        optimizer.zero_grad()
        output.mean().backward()
        optimizer.step()
        bucket = next(buckets)
        bucket.append(output.detach().clone())  # made


main()
