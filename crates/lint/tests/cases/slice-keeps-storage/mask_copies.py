import torch
x = torch.randn(100, 100)
y = x[x > 0]
del x
