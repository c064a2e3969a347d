"""A function counts its calls on itself, and keeps its arguments there too."""
# kind: value
# holder: .history
import torch


def regularise(weight):
    regularise.history.append(weight.detach() ** 2)  # made
    return weight.abs().sum() * 1e-3


regularise.history = []


def main():
    model = torch.nn.Linear(20, 30)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(40):
        optimizer.zero_grad()
        (model(torch.randn(6, 20)).mean() + regularise(model.weight)).backward()
        optimizer.step()


main()
