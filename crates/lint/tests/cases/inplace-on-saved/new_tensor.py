import torch
x = torch.randn(3, requires_grad=True)
y = x.tanh()
y = y + 1
y.sum().backward()
