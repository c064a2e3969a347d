import torch
x = torch.rand(3).requires_grad_(True)
x.clamp_(0, 1)  # expect: inplace-on-grad-leaf
