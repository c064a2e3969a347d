import torch
weights = weights.to(device)
for x, y in loader:
    loss = (criterion(model(x), y) * weights).sum()
