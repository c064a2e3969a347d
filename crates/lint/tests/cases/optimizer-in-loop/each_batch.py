import torch
import torch.nn.functional as F


def train(model, loader):
    for x, y in loader:
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)  # expect: optimizer-in-loop
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
