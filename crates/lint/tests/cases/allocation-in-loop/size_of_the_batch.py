import torch
for x in loader:
    n = x.size(0)
    mask = torch.ones(n, 512, device="cuda")
    out = model(x, mask)
