import torch
features = []
with torch.no_grad():
    for batch in loader:
        out = model(batch)
        features.append(out[:, 0])  # expect: slice-keeps-storage
