import torch
for p in model.parameters():
    p.requires_grad = False
model.eval()
for x in loader:
    features = model(x)
