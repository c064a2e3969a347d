import torch
class Agent:
    def __init__(self):
        self.gru = torch.nn.GRU(8, 8)
        self.hidden = None
    def learn(self, loader, optimizer, criterion):
        for x, y in loader:
            optimizer.zero_grad()
            out, self.hidden = self.gru(x, self.hidden)  # expect: hidden-state-not-detached
            criterion(out, y).backward()
            optimizer.step()
