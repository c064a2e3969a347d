import torch
@torch.inference_mode()
def evaluate(model, val_loader):
    model.eval()
    for x, y in val_loader:
        output = model(x)
