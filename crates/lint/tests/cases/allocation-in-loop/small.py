import torch
for x in loader:
    one = torch.ones(1, device="cuda")
    out = model(x, one)
