import torch
x = torch.ones(3)
x.requires_grad_()
x -= 1  # expect: inplace-on-grad-leaf
