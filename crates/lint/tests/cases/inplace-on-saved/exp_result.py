import torch
x = torch.randn(3, requires_grad=True)
y = x.exp()
y.add_(1)  # expect: inplace-on-saved
y.sum().backward()
