import torch
def train(model, loader, criterion, optimizer):
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()  # expect: missing-zero-grad
        optimizer.step()
