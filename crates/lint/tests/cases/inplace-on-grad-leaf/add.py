import torch
x = torch.randn(10, requires_grad=True)
x.add_(2)  # expect: inplace-on-grad-leaf
