import torch
x = torch.randn(10, requires_grad=True)
x = x + 1
x.add_(1)
