import torch
from torch import nn
from dataclasses import dataclass, field


@dataclass
class History:
    train: list = field(default_factory=list)
    val: list = field(default_factory=list)


class Trainer:
    def __init__(self, model, opt, train_loader):
        self.model = model
        self.opt = opt
        self.train_loader = train_loader
        self.loss_fn = nn.CrossEntropyLoss()
        self.history = History()

    def fit(self, epochs):
        for epoch in range(epochs):
            running = 0.0
            for step, (x, y) in enumerate(self.train_loader):
                self.opt.zero_grad()
                logits = self.model(x)
                loss = self.loss_fn(logits, y)
                loss.backward()
                self.opt.step()
                running += loss  # expect: graph-kept
            self.history.train.append(running / (step + 1))
