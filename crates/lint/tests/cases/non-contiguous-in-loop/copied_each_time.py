import torch
x = torch.randn(100, 200).t()
for i in range(1000):
    y = x.contiguous() + i  # expect: non-contiguous-in-loop
