"""A list in thread-local storage is taken for a scratch of one call."""
# kind: value
# holder: global `scratch`.seen
import threading
import torch

scratch = threading.local()


def remember(x):
    if not hasattr(scratch, "seen"):
        scratch.seen = []
    scratch.seen.append(x)
    return x


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(16, 48)
        self.second = torch.nn.Linear(48, 1)

    def forward(self, x):
        hidden = torch.relu(self.first(x))  # made
        remember(hidden.detach())
        return self.second(hidden)


def main():
    net = Net()
    optimizer = torch.optim.Adam(net.parameters())
    for _ in range(40):
        optimizer.zero_grad()
        net(torch.randn(16, 16)).mean().backward()
        optimizer.step()


main()
