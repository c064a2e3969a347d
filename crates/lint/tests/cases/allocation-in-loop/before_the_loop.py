import torch
mask = torch.ones(512, 512, device="cuda")
for x in loader:
    out = model(x, mask)
