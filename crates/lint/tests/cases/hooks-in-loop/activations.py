import torch

activations = {}


def save(name):
    def hook(module, inputs, output):
        activations[name] = output.detach()
    return hook


with torch.no_grad():
    for images, _ in val_loader:
        model.layer4.register_forward_hook(save("layer4"))  # expect: hooks-in-loop
        model.eval()
        model(images)
        features = activations["layer4"].flatten(1).cpu()
