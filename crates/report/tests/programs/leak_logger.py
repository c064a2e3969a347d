"""Leak: a logger is handed the losses of validation as tensors, with the graphs that made them."""
import torch
from torch import nn
from torch.nn import functional


class Logger:
    def __init__(self):
        self.rows = []

    def log(self, **values):
        self.rows.append(values)


class Trainer:
    def __init__(self):
        self.net = nn.Sequential(nn.Linear(128, 1024), nn.GELU(), nn.Linear(1024, 1024), nn.GELU(), nn.Linear(1024, 10)).cuda()
        self.optimizer = torch.optim.AdamW(self.net.parameters())
        self.logger = Logger()

    def loss(self, size):
        x = torch.randn(size, 128, device="cuda")
        y = torch.randint(0, 10, (size,), device="cuda")
        return functional.cross_entropy(self.net(x), y)

    def validate(self):
        self.logger.log(loss=self.loss(256), size=256)

    def fit(self, steps):
        for _ in range(steps):
            self.optimizer.zero_grad()
            self.loss(256).backward()
            self.optimizer.step()
            self.validate()


def main():
    trainer = Trainer()
    trainer.fit(8)
    return trainer
