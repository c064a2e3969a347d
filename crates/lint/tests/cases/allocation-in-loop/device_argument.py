import torch
for x in loader:
    mask = torch.ones(512, 512, device="cuda")  # expect: allocation-in-loop
    out = model(x, mask)
