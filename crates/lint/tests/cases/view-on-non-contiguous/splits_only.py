import torch
x = torch.randn(6, 4)
y = x.t().view(2, 2, 6)
