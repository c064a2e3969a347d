"""Leak: validation runs with gradients on and sums its loss as a tensor in an attribute that is never reset."""
import torch
from torch import nn
import torch.nn.functional as F

class ConvAutoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Conv2d(3, 32, 4, stride=2, padding=1)
        self.dec = nn.ConvTranspose2d(32, 3, 4, stride=2, padding=1)

    def forward(self, x):
        code = torch.tanh(self.enc(x))
        return torch.sigmoid(self.dec(code))

class Trainer:
    def __init__(self, net):
        self.net = net
        self.opt = torch.optim.SGD(net.parameters(), lr=0.1)
        self.val_loss = 0.0

    def fit_epoch(self, n):
        self.net.train()
        for _ in range(n):
            x = torch.rand(32, 3, 64, 64, device="cuda")
            loss = F.mse_loss(self.net(x), x)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()

    def validate(self, n):
        self.net.eval()
        for _ in range(n):
            x = torch.rand(64, 3, 64, 64, device="cuda")
            loss = F.mse_loss(self.net(x), x)  # gradients are on
            self.val_loss += loss
        return float(self.val_loss)

def main():
    trainer = Trainer(ConvAutoencoder().cuda())
    for epoch in range(6):
        trainer.fit_epoch(4)
        print(epoch, trainer.validate(4))
    return trainer
