import torch
losses = []
with torch.no_grad():
    for x, y in val_loader:
        loss = criterion(model(x), y)
        losses.append(loss)
