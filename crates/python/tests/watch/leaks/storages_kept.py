"""The storages of outputs are kept, for a dump of their bytes that never comes."""
# kind: value
# holder: .pending
import torch


class Dump:
    def __init__(self):
        self.pending = []

    def add(self, tensor):
        self.pending.append(tensor.untyped_storage())


def main():
    model = torch.nn.Linear(64, 64)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    dump = Dump()
    for _ in range(40):
        out = model(torch.randn(32, 64))  # made
        optimizer.zero_grad()
        out.pow(2).mean().backward()
        optimizer.step()
        dump.add(out.detach())


main()
