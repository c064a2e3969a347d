import torch
x = torch.randn(3, requires_grad=True)
y = x + 1
y.mul_(2)
y.sum().backward()
