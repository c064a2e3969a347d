import torch
x = torch.randn(10)
x.add_(1)
x += 1
