"""A list on the class is filled by every instance."""
# kind: value
# holder: class attribute Recorder.seen
import torch


class Recorder(torch.nn.Module):
    seen = []

    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(32, 32)

    def forward(self, x):
        y = self.inner(x)
        Recorder.seen.append((y * 2).detach())  # made
        return y


def main():
    model = Recorder()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(40):
        optimizer.zero_grad()
        model(torch.randn(32, 32)).sum().backward()
        optimizer.step()


main()
