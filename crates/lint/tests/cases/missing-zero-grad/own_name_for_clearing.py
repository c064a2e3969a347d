import torch
class Solver:
    def train(self, loader):
        for x, y in loader:
            loss = self.criterion(self.model(x), y)
            self.reset_grad()
            loss.backward()
            self.g_optimizer.step()
