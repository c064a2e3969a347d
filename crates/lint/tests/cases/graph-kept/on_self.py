import torch
class Trainer:
    def __init__(self, model, optimizer):
        self.model = model
        self.optimizer = optimizer
        self.losses = []
    def fit(self, loader, criterion):
        for x, y in loader:
            self.optimizer.zero_grad()
            loss = criterion(self.model(x), y)
            loss.backward()
            self.optimizer.step()
            self.losses.append(loss)  # expect: graph-kept
