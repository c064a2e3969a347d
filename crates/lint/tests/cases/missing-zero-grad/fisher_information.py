import torch
for x, y in loader:
    loss = criterion(model(x), y)
    loss.backward()
for name, p in model.named_parameters():
    fisher[name] = p.grad.pow(2)
