"""A function keeps its own `locals()` from the beginning."""
import torch


def main(rate=0.1):
    settings = locals()
    model = torch.nn.Linear(32, 32)
    optimizer = torch.optim.SGD(model.parameters(), lr=settings["rate"])
    for _ in range(40):
        optimizer.zero_grad()
        model(torch.randn(8, 32)).pow(2).mean().backward()
        optimizer.step()
    print(sorted(settings)[-1], settings["rate"])


main()
