import torch
w = torch.zeros(3, requires_grad=True)
with torch.no_grad():
    w.add_(1)
    w -= 0.1
