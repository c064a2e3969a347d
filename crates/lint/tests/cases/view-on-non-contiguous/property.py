import torch
x = torch.randn(3, 4)
y = x.T.view(-1)  # expect: view-on-non-contiguous
