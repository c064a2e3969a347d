"""A default argument is one list for all calls."""
# kind: value
# holder: a default of record()
import torch


def record(value, into=[]):
    into.append(value)
    return into


def main():
    model = torch.nn.Linear(32, 32)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(40):
        out = model(torch.randn(32, 32))  # made
        optimizer.zero_grad()
        out.sum().backward()
        optimizer.step()
        record(out.data)


main()
