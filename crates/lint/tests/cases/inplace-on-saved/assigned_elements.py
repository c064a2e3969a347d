import torch
x = torch.randn(3, requires_grad=True)
y = torch.softmax(x, dim=0)
y[0] = 0.0  # expect: inplace-on-saved
y.sum().backward()
