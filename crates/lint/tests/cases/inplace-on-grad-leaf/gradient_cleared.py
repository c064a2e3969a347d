import torch
w = torch.zeros(3, requires_grad=True)
w.sum().backward()
w.grad.zero_()
