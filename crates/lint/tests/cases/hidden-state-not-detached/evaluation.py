import torch
with torch.no_grad():
    hidden = None
    for x in test_loader:
        output, hidden = model(x, hidden)
