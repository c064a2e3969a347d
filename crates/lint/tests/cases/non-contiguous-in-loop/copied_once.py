import torch
x = torch.randn(100, 200).t().contiguous()
for i in range(1000):
    y = x.reshape(-1)
