import torch
import torch.nn.functional as F


def personalise(model, clients):
    for loader in clients:
        optimizer = torch.optim.Adam(model.parameters())
        for x, y in loader:
            optimizer.zero_grad()
            F.mse_loss(model(x), y).backward()
            optimizer.step()


def when_needed(model, loader, stale):
    optimizer = None
    for step, (x, y) in enumerate(loader):
        if optimizer is None or stale(step):
            optimizer = torch.optim.Adam(model.parameters())
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        optimizer.step()
