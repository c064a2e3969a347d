"""A model is trained, then another on its features."""
import torch


def fit(model, source, steps):
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(steps):
        optimizer.zero_grad()
        model(source()).pow(2).mean().backward()
        optimizer.step()


def main():
    first, second = torch.nn.Linear(32, 32), torch.nn.Linear(32, 4)
    fit(first, lambda: torch.randn(16, 32), 40)
    fit(second, lambda: first(torch.randn(16, 32)).detach(), 40)


main()
