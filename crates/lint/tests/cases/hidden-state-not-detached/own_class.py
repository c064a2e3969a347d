import torch
from torch import nn
class RNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(8, 8)
    def forward(self, x, h):
        return self.rnn(x, h)
model = RNN()
h = None
for x, y in train_loader:
    optimizer.zero_grad()
    out, h = model(x, h)  # expect: hidden-state-not-detached
    criterion(out, y).backward()
    optimizer.step()
