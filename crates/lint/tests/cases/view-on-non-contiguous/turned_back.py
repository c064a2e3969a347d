import torch
x = torch.randn(3, 4).t().t()
y = x.view(12)
