import torch
@torch.no_grad()
def evaluate(model, loader, criterion):
    total = 0
    for x, y in loader:
        total += criterion(model(x), y)
    return total
