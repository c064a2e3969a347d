import torch
with torch.no_grad():
    for x, y in val_loader:
        with torch.autocast("cuda"):
            output = model(x)
        total += criterion(output, y).item()
