"""Clean: a network of the program's own, trained with Adam. Nothing grows."""
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(512, 1024)
        self.second = nn.Linear(1024, 1024)
        self.last = nn.Linear(1024, 10)

    def forward(self, x):
        x = torch.relu(self.first(x))
        x = torch.relu(self.second(x))
        return self.last(x)


def main():
    net = Net().cuda()
    optimizer = torch.optim.Adam(net.parameters())
    for _ in range(8):
        x = torch.randn(256, 512, device="cuda")
        y = torch.randint(0, 10, (256,), device="cuda")
        loss = nn.functional.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return net, optimizer
