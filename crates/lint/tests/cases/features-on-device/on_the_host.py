import torch
features = []
with torch.no_grad():
    for x, y in loader:
        features.append(model(x))
