import torch
x = torch.randn(3)
y = x.exp()
y.add_(1)
z = (y * w).sum()
z.backward()
