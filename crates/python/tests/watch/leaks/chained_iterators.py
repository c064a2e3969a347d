"""Iterators are put behind each other and never read."""
# kind: value
# holder: local `rest` of main() -> inside a chain
import itertools
import torch


def main():
    net = torch.nn.Linear(64, 64)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    rest = iter(())
    for _ in range(45):
        out = net(torch.randn(32, 64))  # made
        optimizer.zero_grad()
        out.mean().backward()
        optimizer.step()
        rest = itertools.chain(rest, [out.detach()])


main()
