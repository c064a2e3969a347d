"""A generator keeps every batch that it gave."""
# kind: value
# holder: local `given` of batches()
import torch


def batches():
    given = []
    while True:
        batch = torch.randn(32, 32)  # made
        given.append(batch)
        yield batch


def main():
    model = torch.nn.Linear(32, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    source = batches()
    for _ in range(40):
        optimizer.zero_grad()
        model(next(source)).sum().backward()
        optimizer.step()


main()
