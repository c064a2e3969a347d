import torch
class Trainer:
    def __init__(self):
        self.scaler = torch.amp.GradScaler()
    def fit(self, loader):
        for x, y in loader:
            self.optimizer.zero_grad()
            loss = self.criterion(self.model(x), y)
            self.scaler.scale(loss).backward()
            self.optimizer.step()  # expect: scaler-misuse
