import torch
x = torch.randn(100, 100)
y = x[0]
print(x.sum(), y.sum())
