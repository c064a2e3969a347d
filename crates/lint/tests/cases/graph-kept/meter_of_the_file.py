import torch
import torch.nn.functional as F


class Average:
    def __init__(self):
        self.sum = 0.0
        self.count = 0

    def update(self, value, n=1):
        self.sum += value * n
        self.count += n


def train(model, loader, optimizer):
    meter = Average()
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        meter.update(loss, x.size(0))  # expect: graph-kept
    return meter.sum / meter.count
