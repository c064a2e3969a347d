import torch
x = torch.randn(3, requires_grad=True)
y = x ** 2
y.add_(1)
y.sum().backward()
