import torch
scores = []
with torch.no_grad():
    for x, y in loader:
        out = model(x.cuda())
        scores.append(out.mean().item())
