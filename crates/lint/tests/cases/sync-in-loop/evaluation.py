import torch
with torch.no_grad():
    for x, y in val_loader:
        total += criterion(model(x), y).item()
