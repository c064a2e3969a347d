import torch
x = torch.randn(100, 200).transpose(0, 1)
for _ in range(1000):
    x = x + 1
