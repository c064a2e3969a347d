import torch
for x in loader:
    noise = torch.randn(64, 512, device="cuda")
    out = model(noise)
