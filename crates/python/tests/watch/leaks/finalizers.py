"""A finalizer on a long-lived object is registered in every step, with a tensor as its argument."""
# kind: value
# holder: _registry
import weakref
import torch


class Run:
    pass


def main():
    run = Run()
    model = torch.nn.Linear(16, 64)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(40):
        optimizer.zero_grad()
        out = model(torch.randn(8, 16))  # made
        out.pow(2).mean().backward()
        optimizer.step()
        weakref.finalize(run, print, "last", out.detach()).atexit = False


main()
