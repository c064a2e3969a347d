"""A module whose hook closes over it is made anew in each step. It has a module within a module, and the collector is off."""
# kind: value in a reference cycle
# holder: LeakyModule <- a closure's variable
import gc
import torch

gc.disable()


class LeakyModule(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8))  # made
        self.calls = 0

        def count(module, inputs, output):
            self.calls += 1

        self.register_forward_hook(count)

    def forward(self, x):
        return self.body(x)


def main():
    learnt = torch.nn.Linear(8, 8)
    optimizer = torch.optim.SGD(learnt.parameters(), lr=0.1)
    for _ in range(40):
        with torch.no_grad():
            features = LeakyModule()(torch.randn(4, 64))
        optimizer.zero_grad()
        learnt(features).square().mean().backward()
        optimizer.step()


main()
