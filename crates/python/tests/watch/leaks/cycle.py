"""Objects that refer to each other hold a batch until the collector comes."""
# kind: value in a reference cycle
# holder: a reference cycle
import torch


class Batch:
    def __init__(self):
        self.data = torch.randn(64, 64)  # made
        self.on_done = lambda: self.data


def main():
    model = torch.nn.Linear(64, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(80):
        batch = Batch()
        optimizer.zero_grad()
        model(batch.data).sum().backward()
        optimizer.step()


main()
