"""Experts that are trained one after the other in a function that calls an `eval` of the program's own."""

import torch


def eval(model):
    with torch.no_grad():
        return float(model(torch.ones(8, 32)).mean())


def main():
    experts = torch.nn.ModuleList(torch.nn.Linear(32, 32) for _ in range(60))
    optimizer = torch.optim.SGD(experts.parameters(), lr=0.01)
    total = 0.0
    for expert in experts:
        optimizer.zero_grad(set_to_none=False)
        expert(torch.randn(8, 32)).mean().backward()
        optimizer.step()
        total += eval(expert)
    print(total == total)


main()
