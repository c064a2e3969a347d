import torch
def evaluate(model, val_loader, criterion):
    model.eval()
    total = 0.0
    for x, y in val_loader:
        output = model(x)  # expect: eval-without-no-grad
        total += criterion(output, y).item()
    return total
