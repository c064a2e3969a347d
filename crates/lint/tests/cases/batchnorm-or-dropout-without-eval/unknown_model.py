import torch
with torch.no_grad():
    for x in test_loader:
        out = model(x)
