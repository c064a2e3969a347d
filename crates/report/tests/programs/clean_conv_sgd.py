"""Clean: convolutions and batch norm, SGD with momentum, the step in a function, inputs copied from the host."""
import torch
from torch import nn


def build():
    return nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(),
        nn.Conv2d(32, 64, 3, stride=2, padding=1), nn.BatchNorm2d(64), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10),
    ).cuda()


def train_step(net, optimizer, batch):
    images, labels = (part.cuda(non_blocking=True) for part in batch)
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(net(images), labels)
    loss.backward()
    optimizer.step()
    return loss.item()


def main():
    net = build()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    batches = [(torch.randn(32, 3, 64, 64), torch.randint(0, 10, (32,))) for _ in range(8)]
    losses = [train_step(net, optimizer, batch) for batch in batches]
    return net, optimizer, losses
