import torch
x = torch.randn(3, 4)
y = x.t()
z = y.view(12)  # expect: view-on-non-contiguous
