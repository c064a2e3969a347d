import torch
x = torch.randn(100, 200).transpose(0, 1)
for i in range(1000):
    y = x.reshape(-1)  # expect: non-contiguous-in-loop
