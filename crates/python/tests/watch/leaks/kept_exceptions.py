"""Exceptions are kept, and with them the frames they went through."""
# kind: value
# holder: local `errors` of main()
import torch


def checked(x):
    scaled = x * 3  # made
    if scaled.sum() < 1e9:
        raise ValueError("too small")
    return scaled


def main():
    model = torch.nn.Linear(32, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    errors = []
    for _ in range(40):
        optimizer.zero_grad()
        model(torch.randn(8, 32)).sum().backward()
        optimizer.step()
        try:
            checked(torch.randn(32, 32))  # made
        except ValueError as error:
            errors.append(error)


main()
