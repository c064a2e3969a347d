import torch
x = torch.randn(3, 4).t()
y = x.view(torch.int32)
