import torch
x = torch.randn(3, requires_grad=True)
y = x ** 2
y.sum().backward()
with torch.no_grad():
    x.add_(1)
