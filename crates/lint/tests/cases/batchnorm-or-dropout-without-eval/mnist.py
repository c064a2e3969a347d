import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Dropout(0.2), nn.Linear(128, 10))

    def forward(self, x):
        return self.body(x.flatten(1))


def test(model, loader):
    correct = 0
    with torch.no_grad():
        for x, y in loader:
            correct += (model(x).argmax(1) == y).sum().item()
    return correct / len(loader.dataset)


def main():
    net = Net()
    correct = 0
    with torch.inference_mode():
        for x, y in test_loader:
            correct += (net(x).argmax(1) == y).sum().item()  # expect: batchnorm-or-dropout-without-eval
    print(correct)
