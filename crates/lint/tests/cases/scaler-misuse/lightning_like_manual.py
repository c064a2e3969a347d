import torch
from torch.cuda.amp import GradScaler, autocast


class Engine:
    def __init__(self, model, optimizer, criterion):
        self.model, self.optimizer, self.criterion = model, optimizer, criterion
        self.scaler = GradScaler()

    def train_epoch(self, loader):
        self.model.train()
        for x, y in loader:
            self.optimizer.zero_grad()
            with autocast():
                loss = self.criterion(self.model(x), y)
            self.scaler.scale(loss).backward()
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), 5.0)  # expect: scaler-misuse
            self.scaler.step(self.optimizer)
            self.scaler.update()
