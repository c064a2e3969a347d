import torch
def evaluate(model, val_loader, criterion):
    model.eval()
    with torch.no_grad():
        for x, y in val_loader:
            output = model(x)
