import torch
import torch.nn.functional as F


def train(model, loader):
    for epoch in range(10):
        optimizer = torch.optim.Adam(model.parameters(), lr=0.1 / (epoch + 1))
        for x, y in loader:
            optimizer.zero_grad()
            F.mse_loss(model(x), y).backward()
            optimizer.step()


def unfreeze(model, layers, x, y):
    for epoch in range(10):
        layers[epoch].requires_grad_(True)
        optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad])
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        optimizer.step()
