import torch
x = torch.randn(10000, 10000)
y = x[0, :].clone()
del x
