import torch


def train(loader, bag, criterion):
    total_loss = 0.0
    for targets, points in loader:
        bag["optimizer"].zero_grad()
        outputs = bag["network"](points)[0]
        loss = criterion(outputs, targets)
        loss.backward()
        bag["optimizer"].step()
        total_loss += loss  # expect: graph-kept
    return total_loss / len(loader)
