"""Schedulers that are kept hold the optimizers that were replaced."""
# kind: optimizer state
# holder: local `self`.schedulers of fit()
import torch


class Trainer:
    def __init__(self):
        self.model = torch.nn.Linear(64, 64)
        self.schedulers = []

    def fit(self):
        for _ in range(40):
            optimizer = torch.optim.Adam(self.model.parameters())
            self.schedulers.append(torch.optim.lr_scheduler.StepLR(optimizer, 10))
            optimizer.zero_grad()
            self.model(torch.randn(8, 64)).sum().backward()
            optimizer.step()  # made


Trainer().fit()
