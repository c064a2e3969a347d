import torch
x = torch.ones(3)
x.requires_grad = True
x.mul_(2)  # expect: inplace-on-grad-leaf
