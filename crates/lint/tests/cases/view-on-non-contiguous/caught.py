import torch
y = torch.randn(3, 4).t()
try:
    z = y.view(12)
except RuntimeError as error:
    print(error)
