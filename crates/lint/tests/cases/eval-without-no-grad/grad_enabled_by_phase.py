import torch
def run(model, loaders, phase):
    model.eval()
    for x, y in loaders_loader:
        with torch.set_grad_enabled(phase == "train"):
            out = model(x)
