import torch
class ScheduledOptim:
    def __init__(self, inner):
        self.inner = inner
    def step(self):
        self.inner.step()
        self.inner.zero_grad()
optimizer = ScheduledOptim(torch.optim.Adam(model.parameters()))
for x, y in loader:
    criterion(model(x), y).backward()
    optimizer.step()
