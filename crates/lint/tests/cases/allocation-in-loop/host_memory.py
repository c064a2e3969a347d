import torch
for step in range(1000):
    buffer = torch.zeros(512, 512)
    fill(buffer)
