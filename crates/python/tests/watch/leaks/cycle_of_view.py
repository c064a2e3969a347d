"""Objects that refer to themselves hold a view of a batch, with the collector off. To the batch nothing in Python refers."""
# kind: value in a reference cycle
# holder: a reference cycle
import gc
import torch

gc.disable()


class Shown:
    def __init__(self, part):
        self.part = part
        self.redraw = self.draw

    def draw(self):
        return self.part


def main():
    model = torch.nn.Linear(64, 64)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(40):
        batch = torch.randn(32, 64)  # made
        Shown(batch.view(64, 32))
        optimizer.zero_grad()
        model(batch).pow(2).mean().backward()
        optimizer.step()


main()
