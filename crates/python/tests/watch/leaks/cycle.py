"""Objects that refer to each other hold a batch until the collector comes, which this program lets come rarely."""
# kind: value in a reference cycle
# holder: a reference cycle
import gc
import torch

gc.set_threshold(1_000_000)


class Batch:
    def __init__(self):
        self.data = torch.randn(64, 64)  # made
        self.on_done = lambda: self.data


def main():
    model = torch.nn.Linear(64, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(40):
        batch = Batch()
        optimizer.zero_grad()
        model(batch.data).sum().backward()
        optimizer.step()


main()
