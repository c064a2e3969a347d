import torch
import torch.nn.functional as F


class Average:
    def __init__(self):
        self.sum = 0.0
        self.last = None

    def update(self, value):
        value = value.detach()
        self.sum += value
        self.last = value


class Latest:
    def update(self, value):
        self.value = value


class Window:
    def __init__(self):
        self.values = []

    def update(self, value):
        self.values.append(value)
        if len(self.values) > 20:
            self.values.pop(0)


def train(model, loader, optimizer, meter_of_numbers):
    meter, latest, window = Average(), Latest(), Window()
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        meter.update(loss)
        latest.update(loss)
        window.update(loss)
        meter_of_numbers.update(loss)
