"""Gradients are gathered for a statistic at the end."""
# kind: gradient that is kept
# holder: local `norms` of main()
import torch


def main():
    model = torch.nn.Linear(64, 64)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    norms = []
    for _ in range(40):
        optimizer.zero_grad()
        model(torch.randn(8, 64)).pow(2).sum().backward()  # made
        norms.append([p.grad for p in model.parameters()])
        optimizer.step()


main()
