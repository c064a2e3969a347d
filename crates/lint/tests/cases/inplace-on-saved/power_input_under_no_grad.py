import torch
x = torch.randn(3, requires_grad=True)
y = x ** 2
with torch.no_grad():
    x.add_(1)  # expect: inplace-on-saved
y.sum().backward()
