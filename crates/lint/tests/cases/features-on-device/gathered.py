import torch
features = []
with torch.no_grad():
    for x, y in loader:
        out = model(x.cuda())
        features.append(out)
gathered = all_gather(features)
