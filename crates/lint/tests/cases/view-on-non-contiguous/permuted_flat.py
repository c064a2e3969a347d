import torch
x = torch.randn(2, 3, 4)
y = x.permute(2, 0, 1).view(-1)  # expect: view-on-non-contiguous
