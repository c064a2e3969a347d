import torch
x = torch.randn(3, 4)
y = x.t().reshape(12)
