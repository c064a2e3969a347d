import torch
x = torch.randn(3, requires_grad=True)
try:
    x.add_(1)
except RuntimeError as error:
    print(error)
