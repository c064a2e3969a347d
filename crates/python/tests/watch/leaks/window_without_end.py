"""A window of the latest batches is a deque whose length nobody has given."""
# kind: value
# holder: `latest`
from collections import deque
import torch


def batches(count):
    for _ in range(count):
        yield torch.randn(20, 30)  # made


def main():
    latest = deque()
    model = torch.nn.Sequential(torch.nn.Linear(30, 10), torch.nn.ELU(), torch.nn.Linear(10, 30))
    optimizer = torch.optim.Adadelta(model.parameters())
    for x in batches(45):
        latest.append(x)
        loss = torch.nn.functional.smooth_l1_loss(model(x), x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


main()
