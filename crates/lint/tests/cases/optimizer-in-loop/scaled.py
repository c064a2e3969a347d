import torch
from torch.optim import AdamW


class Trainer:
    def __init__(self, model, loader):
        self.model = model
        self.loader = loader
        self.scaler = torch.amp.GradScaler("cuda")

    def fit(self, criterion):
        for epoch in range(10):
            for x, y in self.loader:
                self.optimizer = AdamW(self.model.parameters())  # expect: optimizer-in-loop
                with torch.autocast("cuda"):
                    loss = criterion(self.model(x), y)
                self.scaler.scale(loss).backward()
                self.scaler.step(self.optimizer)
                self.scaler.update()
                self.optimizer.zero_grad()
